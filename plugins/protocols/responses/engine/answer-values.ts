/** Values of a worker's response: texts, members, usage and errors, of which nothing is certain. */
import {
  breakdownOf,
  type GatewayError,
  type GenerationUsage,
  isObject,
  type JsonObject,
  type WorkerMessage,
} from '#kernel'
import { streamFailure, tokenCount } from '#shared'

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

export function textsOf(parts: unknown): unknown[] {
  return Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? part.text : '')) : []
}

export function readUsage(usage: unknown, tier: unknown): GenerationUsage | null {
  if (!isObject(usage)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.input_tokens),
    cachedTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    outputTokens: tokenCount(usage.output_tokens),
    reasoningTokens: tokenCount(output.reasoning_tokens),
    breakdown: breakdownOf(usage, tier),
  }
}

/** By a word in the code or type of an error: the HTTP status that it stands for. */
const STATUS_OF_WORD: readonly (readonly [word: RegExp, status: number])[] = [
  [/rate_limit|too_many_requests|quota/, 429],
  [/overload|unavailable/, 503],
  [/timeout/, 504],
  [/authentication|invalid_api_key/, 401],
  [/permission/, 403],
  [/server_error|internal/, 502],
  [/invalid|context_length|bad_request|unsupported/, 400],
]

/** @param error of an error event, or of a response that failed; null if it has no text */
export function toAnswerError(error: WorkerMessage | null): GatewayError {
  const words = `${error?.code ?? ''} ${error?.type ?? ''}`
  const status = STATUS_OF_WORD.find(([word]) => word.test(words))?.[1]
  return streamFailure(error?.text ?? 'it gave no reason', status)
}

/** Members of items that their events have, or that the gateway writes itself. */
const EVENT_MEMBERS: Readonly<Record<'message' | 'reasoning' | 'call', ReadonlySet<string>>> = {
  message: new Set(['id', 'type', 'status', 'role', 'content']),
  reasoning: new Set(['id', 'type', 'status', 'summary', 'content', 'encrypted_content']),
  call: new Set(['id', 'type', 'status', 'call_id', 'name', 'arguments']),
}

/** The same of a complete item, with a status that the gateway would not give it. */
export function membersAtEnd(kind: 'message' | 'reasoning' | 'call', item: JsonObject): JsonObject {
  const { status } = item
  const isUsual = !isText(status) || status === 'completed' || status === 'in_progress'
  return isUsual ? membersBeside(kind, item) : { ...membersBeside(kind, item), status }
}

const EVENT: ReadonlySet<string> = new Set([
  'type',
  'sequence_number',
  'item_id',
  'output_index',
  'content_index',
  'summary_index',
  'annotation_index',
  'item',
  'part',
  'response',
  'delta',
  'logprobs',
  'annotation',
  'text',
  'refusal',
  'arguments',
  'name',
  'error',
])

/** Members of an event that the gateway does not read; undefined for nearly all events. */
export function membersOfEvent(event: JsonObject): JsonObject | undefined {
  let members: Record<string, unknown> | undefined
  for (const name in event) {
    if (EVENT.has(name)) continue
    members ??= {}
    members[name] = event[name]
  }
  return members
}

/** Members that the worker added to the format, or that the gateway does not read. */
export function membersBeside(kind: 'message' | 'reasoning' | 'call', item: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(item).filter(([name]) => !EVENT_MEMBERS[kind].has(name) && !name.startsWith('_')),
  )
}
