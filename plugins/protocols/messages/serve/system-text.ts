/** The system prompt as one text. */
import { invalidField } from '../errors.ts'
import type { WireBlock } from '../wire.ts'

/**
 * Agents put such a line first, with a value that changes with every request: in a prompt of a local engine it would make
 * every prefix a new one.
 */
const BILLING = 'x-anthropic-billing-header:'

/** Texts joined by line feeds, without billing lines. @throws invalid_field (400) for blocks that are no text */
export function systemText(content: string | readonly WireBlock[], path: string): string {
  if (typeof content === 'string') return withoutBilling(content)
  const texts: string[] = []
  for (const [index, block] of content.entries()) {
    if (block.type !== 'text') throw invalidField(`${path}.${index}.type`, 'only text can be translated here')
    if (typeof block.text !== 'string') throw invalidField(`${path}.${index}.text`, 'field required')
    const text = withoutBilling(block.text)
    if (text !== '') texts.push(text)
  }
  return texts.join('\n')
}

function withoutBilling(text: string): string {
  if (!text.includes(BILLING)) return text
  return text
    .split('\n')
    .filter((line) => !line.startsWith(BILLING))
    .join('\n')
}
