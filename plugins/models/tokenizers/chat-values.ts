/** Brings the messages of a chat request into the form that templates expect. */
import type { ContentFormat } from '#kernel'
import { isDeeperThan } from './json-depth.ts'
import { TemplateRefusal } from './template-functions.ts'

type Json = Readonly<Record<string, unknown>>

/** Parts of media, by the names that requests use. */
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

/** As of request bodies, in which they are a text. */
const MAX_DEPTH = 128

/** What a template takes. */
export interface MessageForm {
  readonly content: ContentFormat
  /** Whether arguments of tool calls are JSON text, as in requests, or values. */
  readonly toolArguments: 'text' | 'value'
}

/** @throws TemplateRefusal for arguments of tool calls that are not JSON */
export function toTemplateMessages(messages: readonly unknown[], form: MessageForm): Json[] {
  return messages.map((message) => {
    if (!isObject(message)) throw new TemplateRefusal('each message must be an object')
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
    throw new TemplateRefusal(`the arguments of a tool call are nested more than ${MAX_DEPTH} levels deep`)
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new TemplateRefusal('the arguments of a tool call are not valid JSON', { cause })
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
