/** Converts the messages of a chat request to the form that a template expects. */
import type { ContentFormat } from '#kernel'
// Not through #kernel, which would load the kernel into each pool thread.
import { isObject } from '../../../kernel/wire/is-object.ts'
import { parseJson } from './jinja/parse-json.ts'
import { fromJson, type Mapping, TemplateError, type Value } from './jinja/values.ts'

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

/** Names under which templates read the reasoning of a message; the first is the standard one. */
const REASONING = ['reasoning_content', 'reasoning', 'thinking']

/** What a template expects of messages; found by trials. */
export interface MessageForm {
  readonly content: ContentFormat
  /** Content of a message that has only tool calls. */
  readonly emptyContent: 'null' | 'empty'
  /** Arguments of tool calls as JSON text, as in requests, or as values. */
  readonly toolArguments: 'text' | 'value'
  /** Role of developer messages. */
  readonly developer: 'developer' | 'system'
}

/** @throws TemplateError for messages that are not objects and for arguments of tool calls that are nested too deeply */
export function toTemplateMessages(messages: readonly unknown[], form: MessageForm): Mapping[] {
  return messages.map((message) => {
    if (!isObject(message)) throw new TemplateError('each message must be an object')
    const { role, content, tool_calls: calls, ...rest } = message
    const value: Mapping = new Map()
    value.set('role', role === 'developer' ? form.developer : fromJson(role))
    if (content !== undefined || role === 'assistant')
      value.set('content', toContent(content ?? null, role, form))
    // Members that are null are omitted, as in transformers.
    for (const [name, member] of Object.entries(rest)) if (member != null) value.set(name, fromJson(member))
    const reasoning = REASONING.map((name) => value.get(name)).find((text) => text !== undefined)
    if (reasoning !== undefined) for (const name of REASONING) value.set(name, reasoning)
    if (Array.isArray(calls)) {
      if (calls.length > 0)
        value.set(
          'tool_calls',
          calls.map((call) => toToolCall(call, form)),
        )
    } else if (calls != null) value.set('tool_calls', fromJson(calls))
    return value
  })
}

function toContent(content: unknown, role: unknown, form: MessageForm): Value {
  const isParts = form.content === 'parts' && role !== 'tool'
  if (content === null) return form.emptyContent === 'null' ? null : isParts ? [] : ''
  if (!Array.isArray(content))
    return isParts && typeof content === 'string' ? [textPart(content)] : fromJson(content)
  if (isParts) return content.map(toPart)
  return content
    .filter((part) => isObject(part) && TEXT_TYPES.includes(part.type))
    .map((part) => String(part.text))
    .join('\n')
}

const textPart = (text: string): Value =>
  new Map<Value, Value>([
    ['type', 'text'],
    ['text', text],
  ])

function toPart(part: unknown): Value {
  if (!isObject(part)) return fromJson(part)
  const media = MEDIA.get(part.type)
  if (media !== undefined) return new Map([['type', media]])
  return fromJson(TEXT_TYPES.includes(part.type) ? { ...part, type: 'text' } : part)
}

function toToolCall(call: unknown, form: MessageForm): Value {
  const value = fromJson(call)
  const called = value instanceof Map ? value.get('function') : undefined
  const given = called instanceof Map ? called.get('arguments') : undefined
  if (!(called instanceof Map) || typeof given !== 'string') return value
  const parsed = parseArguments(given)
  if (form.toolArguments === 'value') called.set('arguments', parsed)
  return value
}

/** @throws TemplateError for arguments that are nested too deeply */
function parseArguments(text: string): Value {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // As vLLM does: a call that was cut off must not end the conversation.
    return new Map()
  }
}
