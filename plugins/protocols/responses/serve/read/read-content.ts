/** Content of messages and of tool outputs, as parts. @source OpenAI API reference, Responses */
import { responsesErrors, shown } from '../../errors.ts'
import {
  fieldOf,
  isObject,
  type Json,
  missing,
  readArray,
  readObject,
  readString,
  requireString,
  wrongType,
  wrongValue,
} from './fields.ts'

type Part = Json & { readonly type: string }

/** A text stands for one part of the role's kind. Nothing at all is only an assistant's to say. */
export function readContent(content: unknown, role: string, path: string): readonly Part[] {
  if (content === undefined || content === null) missing(path)
  const textType = role === 'assistant' ? 'output_text' : 'input_text'
  if (typeof content === 'string') {
    if (content === '' && role !== 'assistant')
      throw responsesErrors.message_content_empty.with({ param: path }, path)
    return [textPart(textType, content)]
  }
  if (!Array.isArray(content)) wrongType(path, 'a string or an array')
  if (content.length === 0 && role !== 'assistant')
    throw responsesErrors.message_content_empty.with({ param: path }, path)
  return content.map((part, index) => readPart(part, role, `${path}[${index}]`))
}

/** Text, or parts; a tool may have nothing to say. */
export function readOutputContent(output: unknown, path: string): string | readonly Part[] {
  if (typeof output === 'string') return output
  if (output === undefined || output === null) missing(path)
  if (!Array.isArray(output)) wrongType(path, 'a string or an array')
  return output.map((part, index) => readPart(part, 'user', `${path}[${index}]`))
}

function readPart(part: unknown, role: string, path: string): Part {
  if (!isObject(part)) wrongType(path, 'an object')
  const type = readString(part, 'type', `${path}.type`) ?? ''
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text': {
      const text = readString(part, 'text', `${path}.text`) ?? missing(`${path}.text`)
      const kind = type === 'text' ? (role === 'assistant' ? 'output_text' : 'input_text') : type
      if (kind === 'output_text' && role === 'user')
        wrongValue(`${path}.type`, 'must not be output_text in a user message')
      return kind === 'output_text'
        ? { ...textPart(kind, text), ...annotationsOf(part, path) }
        : textPart(kind, text)
    }
    case 'refusal':
      return { type, refusal: readString(part, 'refusal', `${path}.refusal`) ?? '' }
    case 'input_image':
      return readImage(part, role, path)
    case 'input_file':
      return readFile(part, path)
    case 'input_audio': {
      const audio = readObject(part, 'input_audio', `${path}.input_audio`) ?? missing(`${path}.input_audio`)
      const data = requireString(audio, 'data', `${path}.input_audio.data`)
      return {
        type,
        input_audio: { data, format: requireString(audio, 'format', `${path}.input_audio.format`) },
      }
    }
    case 'input_video':
      return { type, video_url: requireString(part, 'video_url', `${path}.video_url`) }
    default:
      throw responsesErrors.unknown_input_type.with(
        { param: `${path}.type`, code: 'json_parse_error' },
        `${path}.type`,
        shown(type),
      )
  }
}

function textPart(type: string, text: string): Part {
  return type === 'output_text' ? { type, text, annotations: [], logprobs: [] } : { type, text }
}

function annotationsOf(part: Json, path: string) {
  return { annotations: readArray(part, 'annotations', `${path}.annotations`) ?? [] }
}

function readImage(part: Json, role: string, path: string): Part {
  if (role !== 'user') wrongValue(`${path}.type`, `must not be input_image in a message of role ${role}`)
  const url = readString(part, 'image_url', `${path}.image_url`)
  if (url === undefined || url === '') {
    if (fieldOf(part, 'file_id') !== undefined)
      throw responsesErrors.unsupported_file_id.with({ param: `${path}.file_id` })
    return missing(`${path}.image_url`)
  }
  if (!/^(https?:\/\/|data:)/i.test(url))
    wrongValue(`${path}.image_url`, 'must be an http, https or data URL')
  return {
    type: 'input_image',
    image_url: url,
    detail: readString(part, 'detail', `${path}.detail`) ?? 'auto',
  }
}

function readFile(part: Json, path: string): Part {
  const data = readString(part, 'file_data', `${path}.file_data`)
  const url = readString(part, 'file_url', `${path}.file_url`)
  const filename = readString(part, 'filename', `${path}.filename`)
  if (data === undefined && url === undefined) {
    if (fieldOf(part, 'file_id') !== undefined)
      throw responsesErrors.unsupported_file_id.with({ param: `${path}.file_id` })
    return missing(`${path}.file_data`)
  }
  if (data === undefined)
    throw responsesErrors.unsupported_content_part.with({ param: `${path}.file_url` }, 'input_file')
  return { type: 'input_file', file_data: data, ...(filename !== undefined && { filename }) }
}
