/** Converts the messages of a chat request to the form that templates expect. */
import type { ContentFormat } from '#kernel'
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

/** Forms that a template expects. */
export interface MessageForm {
  readonly content: ContentFormat
  /** Arguments of tool calls as JSON text, as in requests, or as values. */
  readonly toolArguments: 'text' | 'value'
}

/** @throws TemplateError for messages that are not objects and for arguments of tool calls that are not JSON */
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
  if (isDeeperThan(MAX_DEPTH, text))
    throw new TemplateError(`the arguments of a tool call are nested more than ${MAX_DEPTH} levels deep`)
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new TemplateError('the arguments of a tool call are not valid JSON', { cause })
  }
}

/** As the kernel's, which the threads of tokenizers do not load. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Whether a JSON text is nested deeper than the given number of levels. The result for other texts is undefined. */
export function isDeeperThan(levels: number, text: string): boolean {
  let depth = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isString) {
      if (code === QUOTE) isString = false
      else if (code === BACKSLASH) at++
    } else if (code === QUOTE) isString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > levels) return true
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return false
}
