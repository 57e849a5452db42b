/** Errors of prefill/decode pairs. */

import {
  defineErrors,
  type ErrorMaker,
  type GatewayError,
  type HeaderList,
  headerOf,
  type PairLeg,
  parseBoundedText,
  workerMessage,
} from '#kernel'

type Answer = readonly [status: number, message: string]

const answered = (leg: PairLeg) => (status: number, message: string) =>
  `the ${leg} worker returned status ${status}${message === '' ? '' : `: ${message}`}`
const worker = { source: 'worker', retry: 'before-first-byte' } as const

export const pairErrors = defineErrors('pairs', {
  pd_request_failed: {
    ...worker,
    kind: 'bad_gateway',
    text: (leg: PairLeg) => `the connection to the ${leg} worker failed`,
  },
  pd_batch_too_large: {
    kind: 'bad_request',
    source: 'client',
    text: (most: number) => `a prefill/decode pair accepts at most ${most} prompts or choices per request`,
  },
  request_preparation_failed: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'the request body must be one JSON object',
  },
  prefill_bad_request: { kind: 'bad_request', source: 'client', text: answered('prefill') },
  prefill_not_found: { kind: 'not_found', source: 'worker', text: answered('prefill') },
  prefill_internal_error: { ...worker, kind: 'internal', text: answered('prefill') },
  prefill_bad_gateway: { ...worker, kind: 'bad_gateway', text: answered('prefill') },
  prefill_unavailable: { ...worker, kind: 'unavailable', text: answered('prefill') },
  prefill_error: { ...worker, kind: 'internal', text: answered('prefill') },
  decode_bad_request: { kind: 'bad_request', source: 'client', text: answered('decode') },
  decode_not_found: { kind: 'not_found', source: 'worker', text: answered('decode') },
  decode_internal_error: { ...worker, kind: 'internal', text: answered('decode') },
  decode_bad_gateway: { ...worker, kind: 'bad_gateway', text: answered('decode') },
  decode_unavailable: { ...worker, kind: 'unavailable', text: answered('decode') },
  decode_error: { ...worker, kind: 'internal', text: answered('decode') },
})

/** Name of the error within those of a leg; any other status is `error`. */
const NAME_OF_STATUS: ReadonlyMap<
  number,
  'bad_request' | 'not_found' | 'internal_error' | 'bad_gateway' | 'unavailable'
> = new Map([
  [400, 'bad_request'],
  [404, 'not_found'],
  [500, 'internal_error'],
  [502, 'bad_gateway'],
  [503, 'unavailable'],
])

interface Refusal {
  readonly status: number
  readonly headers: HeaderList
  /** Error message of the worker; may be empty. */
  readonly message: string
}

/** The error for a worker's error response, with its Retry-After. */
export function toLegError(leg: PairLeg, { status, headers, message }: Refusal): GatewayError {
  const make: ErrorMaker<Answer> = pairErrors[`${leg}_${NAME_OF_STATUS.get(status) ?? 'error'}`]
  const retryAfter = headerOf(headers, 'retry-after')
  const options = retryAfter === undefined ? {} : { headers: ['retry-after', retryAfter] }
  return make.with(options, status, message)
}

/** Longest part of a worker's error message that is shown to the client, characters. */
const MAX_SAID_LENGTH = 1_000

/** Extracts the message of a worker's error body in the common formats. */
export function errorMessageIn(body: Buffer): string {
  const text = body.toString('utf8')
  return shorten(workerMessage(parseOrNull(text))?.text ?? text.trim())
}

/** Null for text that is not JSON. */
export function parseOrNull(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return null
  }
}

function shorten(text: string): string {
  return text.length <= MAX_SAID_LENGTH ? text : `${text.slice(0, MAX_SAID_LENGTH)}…`
}
