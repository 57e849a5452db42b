/** The content of a message, as a list of parts. @source responses facts 2.1, 2.2 */
import { conversationErrors } from './errors.ts'

type Json = Readonly<Record<string, unknown>>

const PARTS = new Set([
  'input_text',
  'input_image',
  'input_file',
  'input_audio',
  'input_video',
  'output_text',
  'refusal',
  'text',
])
/** The member of a part that must be a text. */
const TEXTS: ReadonlyMap<string, string> = new Map([
  ['input_text', 'text'],
  ['output_text', 'text'],
  ['text', 'text'],
  ['refusal', 'refusal'],
])

/**
 * @param path of the content in the request, such as `items[0].content`
 * @throws missing_required_parameter, invalid_type, message_content_empty, unsupported_content_part
 */
export function readContent(value: unknown, role: string, path: string): readonly Json[] {
  if (value === undefined || value === null) {
    throw conversationErrors.missing_required_parameter.with({ param: path }, path)
  }
  // Assistants do say nothing at times; users who do have made a mistake.
  const mayBeEmpty = role === 'assistant'
  if (typeof value === 'string') {
    if (value === '' && !mayBeEmpty)
      throw conversationErrors.message_content_empty.with({ param: path }, path)
    return [role === 'assistant' ? outputText(value) : { type: 'input_text', text: value }]
  }
  if (!Array.isArray(value)) {
    throw conversationErrors.invalid_type.with({ param: path }, path, 'a string or an array')
  }
  if (value.length === 0 && !mayBeEmpty)
    throw conversationErrors.message_content_empty.with({ param: path }, path)
  return value.map((part, index) => readPart(part, role, `${path}[${index}]`))
}

function readPart(value: unknown, role: string, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw conversationErrors.invalid_type.with({ param: path }, path, 'an object')
  }
  const part = value as Json
  const { type } = part
  if (typeof type !== 'string' || !PARTS.has(type)) {
    const named = typeof type === 'string' ? type : ''
    throw conversationErrors.unsupported_content_part.with({ param: `${path}.type` }, named)
  }
  const member = TEXTS.get(type)
  if (member !== undefined && typeof part[member] !== 'string') {
    const param = `${path}.${member}`
    throw conversationErrors.invalid_type.with({ param }, param, 'a string')
  }
  if (type === 'output_text') return { ...outputText(''), ...part }
  if (type !== 'text') return part
  return role === 'assistant'
    ? { ...outputText(''), ...part, type: 'output_text' }
    : { ...part, type: 'input_text' }
}

function outputText(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}
