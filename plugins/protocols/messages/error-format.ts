/** Error bodies of the Messages format: the vendor's envelope with the request id. @source Anthropic API reference, Errors */
import {
  type ErrorFormat,
  type ErrorKind,
  type GatewayError,
  isContextOverflow,
  type RequestFacts,
  type TSchema,
  Type,
} from '#kernel'

/** @source Anthropic API reference, Messages */
const TYPE_OF_KIND: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'request_too_large',
  unsupported_media: 'invalid_request_error',
  headers_too_large: 'invalid_request_error',
  failed_dependency: 'api_error',
  rate_limited: 'rate_limit_error',
  internal: 'api_error',
  not_implemented: 'api_error',
  bad_gateway: 'api_error',
  unavailable: 'overloaded_error',
  gateway_timeout: 'timeout_error',
  insufficient_storage: 'api_error',
}
const BAD_REQUEST = 400
const PAYMENT_REQUIRED = 402
const BAD_GATEWAY = 502

export const messagesErrorFormat: ErrorFormat = Object.freeze({
  name: 'MessagesError',
  schema: Type.Object({
    type: Type.Literal('error'),
    error: Type.Object({ type: Type.String(), message: Type.String() }),
    request_id: Type.String(),
  }) as TSchema,
  body: toEnvelope,
  lastEvents: (error: GatewayError, request: RequestFacts) =>
    `event: error\ndata: ${JSON.stringify(toEnvelope(error, request))}\n\n`,
  status: statusOf,
  fillsRefusals: true,
  headers: ({ kind, source }: GatewayError, { requestId }: RequestFacts) =>
    // Agents retry a refused key for many seconds without this header.
    kind === 'unauthorized' && source !== 'worker'
      ? ['request-id', requestId, 'x-should-retry', 'false']
      : ['request-id', requestId],
})

/** The format has no status for an unreachable tool server. */
function statusOf(error: GatewayError): number {
  if (error.kind === 'failed_dependency') return BAD_GATEWAY
  return overflowMessage(error) === null ? error.status : BAD_REQUEST
}

function toEnvelope(error: GatewayError, { requestId }: RequestFacts): object {
  const overflow = overflowMessage(error)
  return {
    type: 'error',
    error:
      overflow === null
        ? { type: typeOf(error), message: error.message }
        : { type: 'invalid_request_error', message: overflow },
    request_id: requestId,
  }
}

function typeOf({ kind, status }: GatewayError): string {
  return status === PAYMENT_REQUIRED ? 'billing_error' : TYPE_OF_KIND[kind]
}

const PHRASE = 'prompt is too long'
/** How engines name the context length, the prompt and `max_tokens` in the message of a refusal. */
const WINDOW = /maximum context length (?:is|of) (\d{1,15})/
const PROMPT = /(\d{1,15}) (?:tokens )?(?:in the messages|from the input messages|input tokens|in the prompt)/
const ANSWER = /(?:(\d{1,15}) (?:tokens )?(?:in|for) the completion|too large: (\d{1,15}))/
const NUMBERS = /\d[\d,]{0,14}/g
/** Statuses with which engines refuse a prompt; an error inside of a stream has none. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422])

function numberIn(message: string, pattern: RegExp): number | null {
  const found = pattern.exec(message)
  return found === null ? null : Number(found[1] ?? found[2])
}

/**
 * The message for a prompt that is too long, in the words by which clients know that they must shorten it: each engine words
 * it differently. Null for other errors.
 */
function overflowMessage({ code, status, source, message }: GatewayError): string | null {
  const mayBe = source === 'worker' && (REFUSALS.has(status) || code === 'worker_stream_failed')
  if (code !== 'context_length_exceeded' && !(mayBe && isContextOverflow({ code, text: message })))
    return null
  if (message.includes(PHRASE)) return message
  const window = numberIn(message, WINDOW)
  const prompt = numberIn(message, PROMPT)
  const answer = numberIn(message, ANSWER)
  if (window !== null && prompt !== null && answer !== null && prompt <= window)
    return `input length and \`max_tokens\` exceed context limit: ${prompt} + ${answer} > ${window}, decrease input length or \`max_tokens\` and try again`
  if (window !== null && prompt !== null && prompt > window)
    return `${PHRASE}: ${prompt} tokens > ${window} maximum (${message})`
  const [most, used] = (message.match(NUMBERS) ?? [])
    .slice(0, 2)
    .map((digits) => Number(digits.replaceAll(',', '')))
    .sort((a, b) => a - b)
  if (used === undefined) return `${PHRASE}: ${message}`
  return `${PHRASE}: ${used} tokens > ${most} maximum (${message})`
}
