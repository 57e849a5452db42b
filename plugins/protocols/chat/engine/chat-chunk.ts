/** The shapes of chat answers as far as they are read: what a worker says is checked here, and nowhere trusted. */
import { parseBoundedText } from '#shared'

export interface WireToolCall {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null
}

/** A delta of a stream, or the message of a whole answer. */
export interface WireDelta {
  readonly content?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly refusal?: unknown
  readonly annotations?: unknown
  readonly tool_calls?: unknown
  readonly function_call?: unknown
}

export interface WireChoice {
  readonly index?: unknown
  readonly delta?: WireDelta | null
  readonly message?: WireDelta | null
  /** Of completions. */
  readonly text?: unknown
  readonly logprobs?: unknown
  readonly finish_reason?: unknown
  readonly matched_stop?: unknown
  readonly stop_reason?: unknown
  readonly token_ids?: unknown
}

export interface WireAnswer {
  readonly id?: unknown
  readonly model?: unknown
  readonly created?: unknown
  readonly system_fingerprint?: unknown
  readonly choices?: unknown
  readonly usage?: unknown
  /** Words of an error that came in place of an answer. */
  readonly error?: string
}

/** @throws SyntaxError when it is no JSON, TypeError when it is no object */
export function readChunk(text: string): WireAnswer {
  const value = parseBoundedText(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError('an event holds no JSON object')
  const { error } = value as { error?: unknown }
  if (error === undefined || error === null) return value as WireAnswer
  return { error: wordsOf(error) }
}

function wordsOf(error: unknown): string {
  const { message } = (typeof error === 'object' && error !== null ? error : {}) as { message?: unknown }
  const words =
    typeof message === 'string' ? message : typeof error === 'string' ? error : 'it gave no reason'
  return words.slice(0, 1_000)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
