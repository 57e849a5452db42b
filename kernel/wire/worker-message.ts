/**
 * What a worker says about an error, in the body of its response or in an event of its stream, and whether it is the refusal of
 * a prompt that is longer than the context of the model.
 */

import { parseBoundedText } from './bounded-json.ts'
import { isObject } from './is-object.ts'

/** Levels of nested error objects that are read. */
const MAX_DEPTH = 4
const MAX_PARAM_LENGTH = 100
/** Faults of a list that are named. */
const MAX_FAULTS = 8

export interface WorkerMessage {
  readonly text: string
  readonly code: string | null
  readonly param: string | null
  /** Such as `rate_limit_error`. */
  readonly type: string | null
}

/**
 * Reads the usual shapes: `{error: {message, code}}`, `{message}`, `{detail}`, a text, FastAPI's list of `{loc, msg}`.
 * @returns null if it has no text
 */
export function workerMessage(value: unknown, depth = 0): WorkerMessage | null {
  if (Array.isArray(value)) return messageOfList(value)
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

/** @source FastAPI, RequestValidationError */
function messageOfList(list: readonly unknown[]): WorkerMessage | null {
  const faults = list.slice(0, MAX_FAULTS).filter(isObject)
  const texts = faults.map(({ loc, msg }) => {
    const path = Array.isArray(loc) ? loc.filter(isStep).join('.') : ''
    const text = textOf(msg) ?? ''
    return path === '' ? text : `${path}: ${text}`
  })
  const text = texts.filter((one) => one !== '').join('; ')
  return text === '' ? null : { text, code: null, param: null, type: null }
}

/** Of the path within the request's body. */
function isStep(step: unknown): boolean {
  return typeof step === 'number' || (typeof step === 'string' && step !== 'body')
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
  return workerMessage(parsed(body.toString('utf8')))
}

/** @returns null for a text that is not JSON */
function parsed(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return null
  }
}

/** The refusal of a worker, for an error of the gateway. */
export interface Refusal {
  readonly message: string
  /** The body is an error object whose members are texts, as strict clients read it, or an object without a message. */
  readonly isReadable: boolean
  readonly code?: string
  readonly param?: string
  readonly type?: string
}

const MAX_MESSAGE_LENGTH = 1_000
const PAGE = /^<(?:!doctype|html|\?xml)/i
const TAG = /<[^<>]*>/g
const TITLE = /<title[^>]{0,200}>([^<]{1,300})/i

/** @param body its beginning, at most 64 KiB */
export function readRefusal(status: number, body: Buffer): Refusal {
  const content = body.toString('utf8').trim()
  const value = parsed(content)
  const said = workerMessage(value)
  const message = said?.text.trim() || (value === null ? textOfPage(content) : '')
  const code = said?.code ?? numericCode(value)
  return {
    message: message === '' ? `the worker answered with status ${status}` : shorten(message),
    isReadable: isObject(value) && (said === null || isErrorObject(value)),
    ...(code != null && { code }),
    ...(said?.param != null && { param: said.param }),
    ...(said?.type != null && said.type !== 'error' && { type: said.type.slice(0, MAX_PARAM_LENGTH) }),
  }
}

/** A page is named by its title: clients show the message as text. */
function textOfPage(text: string): string {
  if (!PAGE.test(text)) return text
  return (TITLE.exec(text)?.[1] ?? text.replace(TAG, ' ')).replace(/\s+/g, ' ').trim()
}

/** Some engines repeat the status as the code. */
function numericCode(value: unknown): string | null {
  if (!isObject(value)) return null
  const { code } = isObject(value.error) ? value.error : value
  return typeof code === 'number' ? String(code) : null
}

function isErrorObject(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.error)) return false
  const { message, type, code, param } = value.error
  return typeof message === 'string' && [type, code, param].every(isTextOrNull)
}

function isTextOrNull(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

function shorten(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH)}…`
}
