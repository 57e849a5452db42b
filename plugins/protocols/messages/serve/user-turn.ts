/** A user's turn as chat messages: the results of tools first, then what the user says. */
import type { ChatMessage, ContentPart } from '#kernel'
import { invalidField } from '../errors.ts'
import type { WireBlock } from '../wire.ts'
import { isObject } from './check-request.ts'
import { type MediaOptions, searchResultText, toDocumentParts, toImagePart } from './media-parts.ts'
import { toWorkerId } from './tool-ids.ts'

/** @throws invalid_field (400) naming the block */
export function toUserMessages(
  content: string | readonly WireBlock[],
  path: string,
  options: MediaOptions,
): ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }]
  const results: ChatMessage[] = []
  const seen: ContentPart[] = []
  const parts: ContentPart[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    if (block.type === 'tool_result') results.push(toToolMessage(block, at, seen, options))
    else for (const part of toParts(block, at, options)) parts.push(part)
  }
  // What tools have shown belongs to their results, so it stands before the user's own words.
  const all = seen.concat(parts)
  if (all.length === 0) return results.length > 0 ? results : [{ role: 'user', content: '' }]
  return [...results, { role: 'user', content: joined(all) }]
}

/** One text where there is nothing but texts: many templates take no parts. */
function joined(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

function toParts(block: WireBlock, path: string, options: MediaOptions): ContentPart[] {
  switch (block.type) {
    case 'text':
      if (typeof block.text !== 'string') throw invalidField(`${path}.text`, 'field required')
      return [{ type: 'text', text: block.text }]
    case 'image':
      return [toImagePart(block, path)]
    case 'document':
      return toDocumentParts(block, path, options)
    case 'search_result':
      return [{ type: 'text', text: searchResultText(block) }]
    case 'container_upload':
      return []
    default:
      throw invalidField(
        `${path}.type`,
        `a block of type '${block.type.slice(0, 64)}' cannot be translated for this model`,
      )
  }
}

/** @param seen gets what of the result is no text: chat has no place for it in a tool message */
function toToolMessage(
  { tool_use_id: id, content, is_error: isError }: WireBlock,
  path: string,
  seen: ContentPart[],
  options: MediaOptions,
): ChatMessage {
  if (typeof id !== 'string' || id === '') throw invalidField(`${path}.tool_use_id`, 'field required')
  return {
    role: 'tool',
    tool_call_id: toWorkerId(id),
    content: resultText(content, `${path}.content`, seen, options),
    ...(isError === true && { is_error: true }),
  }
}

export function resultText(
  content: unknown,
  path: string,
  seen: ContentPart[],
  options: MediaOptions,
): string {
  if (content == null) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw invalidField(path, 'must be a text or a list of blocks')
  const texts: string[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    if (!isObject(block) || typeof block.type !== 'string') throw invalidField(`${at}.type`, 'field required')
    if (block.type === 'tool_reference') texts.push(`tool: ${String(block.tool_name)}`)
    else
      for (const part of toParts(block as unknown as WireBlock, at, options)) {
        if (part.type === 'text') texts.push(part.text)
        else seen.push(part)
      }
  }
  return texts.join('\n')
}
