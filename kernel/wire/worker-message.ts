/**
 * What a worker says about an error, in the body of its response or in an event of its stream, and whether it is the refusal of
 * a prompt that is longer than the context of the model.
 */

import { parseBoundedText } from './bounded-json.ts'
import { isObject } from './is-object.ts'

/** Levels of nested error objects that are read. */
const MAX_DEPTH = 4
const MAX_PARAM_LENGTH = 100

export interface WorkerMessage {
  readonly text: string
  readonly code: string | null
  readonly param: string | null
  /** Such as `rate_limit_error`. */
  readonly type: string | null
}

/**
 * Reads the usual shapes: `{error: {message, code}}`, `{message}`, `{detail}`, a text.
 * @returns null if it has no text
 */
export function workerMessage(value: unknown, depth = 0): WorkerMessage | null {
  if (typeof value === 'string') return { text: value, code: null, param: null, type: null }
  if (!isObject(value) || depth >= MAX_DEPTH) return null
  const { error, message, detail, code, param, type } = value
  const inner =
    workerMessage(error, depth + 1) ?? workerMessage(message, depth + 1) ?? workerMessage(detail, depth + 1)
  if (inner === null) return null
  return {
    text: inner.text,
    code: inner.code ?? textOf(code),
    param: inner.param ?? shortTextOf(param),
    type: inner.type ?? textOf(type),
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function shortTextOf(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.length <= MAX_PARAM_LENGTH ? text : null
}

/** Codes and types: OpenAI and those that follow it; llama.cpp. */
const CODES: ReadonlySet<string> = new Set(['context_length_exceeded', 'exceed_context_size_error'])

/** Engines that send no code word it in one of these ways; in lower case. */
const PHRASES = [
  // vLLM, SGLang, OpenAI, Mistral, DeepSeek, Together
  'context length',
  'context_length',
  // OpenAI Responses, llama-cpp-python
  'context window',
  // llama.cpp
  'context size',
  // vLLM
  'maximum model length',
  // TensorRT-LLM
  'should not exceed max_num_tokens',
  // Anthropic
  'prompt is too long',
  'context limit',
  // Bedrock
  'input is too long',
  'too many tokens',
  'too many input tokens',
  // Gemini
  'maximum number of tokens',
  // xAI
  'maximum prompt length',
] as const

/** The phrases are at the beginning; some engines append the request. */
const MAX_TEXT = 1_000

/** Whether the error of a request with status 400 is one of its length. */
export function isContextOverflow({ code, text }: Pick<WorkerMessage, 'code' | 'text'>): boolean {
  if (code !== null && CODES.has(code)) return true
  const beginning = text.slice(0, MAX_TEXT).toLowerCase()
  return PHRASES.some((phrase) => beginning.includes(phrase))
}

/** As `isContextOverflow`, for the body of a response; false for a body that is not JSON. */
export function isContextOverflowBody(body: Buffer): boolean {
  const said = readMessage(body)
  return said !== null && isContextOverflow({ text: said.text, code: said.code ?? said.type })
}

function readMessage(body: Buffer): WorkerMessage | null {
  try {
    return workerMessage(parseBoundedText(body.toString('utf8')))
  } catch {
    return null
  }
}
