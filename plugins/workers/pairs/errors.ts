/** What a client sees when one worker of a prefill/decode pair fails. */

import {
  defineErrors,
  type ErrorMaker,
  type GatewayError,
  type HeaderList,
  headerOf,
  type PairLeg,
} from '#kernel'
import { parseBoundedText } from '#shared'

type Answer = readonly [status: number, said: string]

const answered = (leg: PairLeg) => (status: number, said: string) =>
  `the ${leg} worker answered with status ${status}${said === '' ? '' : `: ${said}`}`
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
    text: (most: number) => `a prefill/decode pair takes at most ${most} prompts or choices in one request`,
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

const BY_STATUS: Readonly<Record<PairLeg, ReadonlyMap<number, ErrorMaker<Answer>>>> = {
  prefill: new Map([
    [400, pairErrors.prefill_bad_request],
    [404, pairErrors.prefill_not_found],
    [500, pairErrors.prefill_internal_error],
    [502, pairErrors.prefill_bad_gateway],
    [503, pairErrors.prefill_unavailable],
  ]),
  decode: new Map([
    [400, pairErrors.decode_bad_request],
    [404, pairErrors.decode_not_found],
    [500, pairErrors.decode_internal_error],
    [502, pairErrors.decode_bad_gateway],
    [503, pairErrors.decode_unavailable],
  ]),
}

interface Refusal {
  readonly status: number
  readonly headers: HeaderList
  /** The worker's own words; empty when it had none. */
  readonly said: string
}

/** The error that stands for a worker's refusal. Its Retry-After goes to the client. */
export function toLegError(leg: PairLeg, { status, headers, said }: Refusal): GatewayError {
  const other = leg === 'prefill' ? pairErrors.prefill_error : pairErrors.decode_error
  const retryAfter = headerOf(headers, 'retry-after')
  const options = retryAfter === undefined ? {} : { headers: ['retry-after', retryAfter] }
  return (BY_STATUS[leg].get(status) ?? other).with(options, status, said)
}

/** Most of a refusal that is repeated to the client, in characters. */
const MAX_SAID_LENGTH = 1_000
/** Error objects within error objects are followed this far. */
const MAX_DEPTH = 4

/** What a worker's error body says, in whichever of the usual shapes it is. */
export function spokenError(body: Buffer): string {
  const text = body.toString('utf8')
  return shorten(spokenIn(parse(text), 0) ?? text.trim())
}

function spokenIn(value: unknown, depth: number): string | null {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return null
  const { error, message, detail } = value as Record<string, unknown>
  return spokenIn(error, depth + 1) ?? spokenIn(message, depth + 1) ?? spokenIn(detail, depth + 1)
}

function parse(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return null
  }
}

function shorten(text: string): string {
  return text.length <= MAX_SAID_LENGTH ? text : `${text.slice(0, MAX_SAID_LENGTH)}…`
}
