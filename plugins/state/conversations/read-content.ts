/** The content of a message, as a list of parts. @source OpenAI API reference, Responses */
import { conversationErrors } from './errors.ts'
import { asObject, type Json, needMember, needText } from './read-members.ts'

/** What else a part must have, by type. */
const PARTS: ReadonlyMap<string, (part: Json, path: string) => void> = new Map([
  ['input_text', isTextOf('text')],
  ['output_text', isTextOf('text')],
  ['text', isTextOf('text')],
  ['refusal', isTextOf('refusal')],
  ['input_image', checkImage],
  ['input_file', checkFile],
  ['input_audio', checkAudio],
  ['input_video', (part: Json, path: string) => void needText(part, path, 'video_url')],
])

/**
 * @param path of the content in the request, such as `items[0].content`
 * @throws missing_required_parameter, invalid_type, message_content_empty, unsupported_content_part, unsupported_file_id
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

/** What a call gave: a text, or parts. @throws as for the content of a message, which must not be empty */
export function readOutput(value: unknown, path: string): string | readonly Json[] {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) {
    throw conversationErrors.missing_required_parameter.with({ param: path }, path)
  }
  if (!Array.isArray(value)) {
    throw conversationErrors.invalid_type.with({ param: path }, path, 'a string or an array')
  }
  return value.map((part, index) => readPart(part, 'user', `${path}[${index}]`))
}

/** Parts of thoughts. @param type of those that do not say theirs */
export function readTexts(parts: readonly unknown[], type: string, path: string): readonly Json[] {
  return parts.map((value, index) => {
    const part = asObject(value, `${path}[${index}]`)
    needText(part, `${path}[${index}]`, 'text')
    return { ...part, type: typeof part.type === 'string' ? part.type : type }
  })
}

function readPart(value: unknown, role: string, path: string): Json {
  const part = asObject(value, path)
  const { type } = part
  const check = typeof type === 'string' ? PARTS.get(type) : undefined
  if (check === undefined) {
    const named = typeof type === 'string' ? type : ''
    throw conversationErrors.unsupported_content_part.with({ param: `${path}.type` }, named)
  }
  check(part, path)
  if (type === 'output_text') return { ...outputText(''), ...part }
  if (type !== 'text') return part
  return role === 'assistant'
    ? { ...outputText(''), ...part, type: 'output_text' }
    : { ...part, type: 'input_text' }
}

function outputText(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function isTextOf(member: string): (part: Json, path: string) => void {
  return (part, path) => {
    const param = `${path}.${member}`
    if (typeof part[member] !== 'string')
      throw conversationErrors.invalid_type.with({ param }, param, 'a string')
  }
}

function checkImage(part: Json, path: string): void {
  refuseFileId(part, path, 'image_url')
  const param = `${path}.image_url`
  if (!/^(https?:\/\/|data:)/i.test(needText(part, path, 'image_url')))
    throw conversationErrors.invalid_value.with({ param }, param, 'an http, https or data URL')
}

function checkFile(part: Json, path: string): void {
  refuseFileId(part, path, 'file_data')
  if (typeof part.file_url === 'string' && typeof part.file_data !== 'string')
    throw conversationErrors.unsupported_content_part.with({ param: `${path}.file_url` }, 'input_file')
  needText(part, path, 'file_data')
}

function checkAudio(part: Json, path: string): void {
  const param = `${path}.input_audio`
  const audio = asObject(needMember(part, path, 'input_audio'), param)
  needText(audio, param, 'data')
  needText(audio, param, 'format')
}

/** Files are known by their content only. */
function refuseFileId(part: Json, path: string, content: string): void {
  if (typeof part[content] === 'string' || part.file_id === undefined || part.file_id === null) return
  throw conversationErrors.unsupported_file_id.with({ param: `${path}.file_id` })
}
