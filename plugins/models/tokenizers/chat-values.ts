/** Converts the messages of a chat request to the form that templates expect. */
import type { ContentFormat } from '#kernel'
// Not through #kernel, which would load the kernel into each pool thread.
import { isObject } from '../../../kernel/wire/is-object.ts'
import { JsonScan } from '../../../kernel/wire/json-scan.ts'
import { TemplateError } from './template-values.ts'

type Json = Readonly<Record<string, unknown>>

/** Media types by type of the content part in requests. */
const MEDIA: ReadonlyMap<unknown, string> = new Map([
  ['image_url', 'image'],
  ['input_image', 'image'],
  ['image', 'image'],
  ['video_url', 'video'],
  ['video', 'video'],
  ['audio_url', 'audio'],
  ['input_audio', 'audio'],
  ['audio', 'audio'],
])
const TEXT_TYPES: readonly unknown[] = ['text', 'input_text', 'output_text']

/** Maximum nesting of arguments, as for request bodies. */
const MAX_DEPTH = 128
const scan = new JsonScan()

/** Forms that a template expects. */
export interface MessageForm {
  readonly content: ContentFormat
  /** Arguments of tool calls as JSON text, as in requests, or as values. */
  readonly toolArguments: 'text' | 'value'
}

/** @throws TemplateError for messages that are not objects and for arguments of tool calls that are nested too deeply */
export function toTemplateMessages(messages: readonly unknown[], form: MessageForm): Json[] {
  return messages.map((message) => {
    if (!isObject(message)) throw new TemplateError('each message must be an object')
    const { content, tool_calls: calls, ...rest } = message
    const value: Record<string, unknown> = { ...rest }
    if (content !== undefined || rest.role === 'assistant')
      value.content = toContent(content ?? null, form.content)
    if (Array.isArray(calls)) value.tool_calls = calls.map((call) => toToolCall(call, form))
    else if (calls !== undefined && calls !== null) value.tool_calls = calls
    return value
  })
}

function toContent(content: unknown, format: ContentFormat): unknown {
  if (!Array.isArray(content)) return content
  if (format === 'parts') return content.map(toPart)
  return content
    .filter((part) => isObject(part) && TEXT_TYPES.includes(part.type))
    .map((part) => String(part.text))
    .join('\n')
}

function toPart(part: unknown): unknown {
  if (!isObject(part)) return part
  const media = MEDIA.get(part.type)
  if (media !== undefined) return { type: media }
  return TEXT_TYPES.includes(part.type) ? { ...part, type: 'text' } : part
}

function toToolCall(call: unknown, form: MessageForm): unknown {
  if (!isObject(call) || !isObject(call.function)) return call
  const { arguments: given } = call.function
  if (typeof given !== 'string') return call
  const value = parseArguments(given)
  return {
    ...call,
    function: { ...call.function, arguments: form.toolArguments === 'value' ? value : given },
  }
}

function parseArguments(text: string): unknown {
  const bytes = Buffer.from(text)
  if (scan.begin(bytes, MAX_DEPTH).run(bytes.length) === 'too_deep')
    throw new TemplateError(`the arguments of a tool call are nested more than ${MAX_DEPTH} levels deep`)
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch {
    // As vLLM does: a call that was cut off must not end the conversation.
    return {}
  }
}
