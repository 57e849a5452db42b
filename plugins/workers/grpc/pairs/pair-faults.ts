/** What a client sees when one half of a pair fails. */
import {
  defineErrors,
  type GatewayError,
  type LegFault,
  type PairLeg,
  toUpstreamError,
  type UpstreamFailure,
} from '#kernel'

const failed = (leg: PairLeg) => ({
  kind: 'bad_gateway' as const,
  source: 'worker' as const,
  text: (why: string) => `the ${leg} worker did not do its part: ${why}`,
})

export const pairErrors = defineErrors('grpc pairs', {
  prefill_worker_failed_to_start: failed('prefill'),
  decode_worker_failed_to_start: failed('decode'),
  runtime_pd_not_supported: {
    kind: 'bad_request',
    source: 'gateway',
    text: (runtime: string) => `${runtime} engines cannot share a request`,
  },
  pd_runtimes_differ: {
    kind: 'unavailable',
    source: 'gateway',
    retry: 'before-first-byte',
    text: (prefill: string, decode: string) => `a ${prefill} engine cannot prefill for a ${decode} engine`,
  },
})

/** The status is the one that the worker's own would be. */
export function toLegFault(leg: PairLeg, failure: UpstreamFailure): LegFault {
  const own: GatewayError = failure.error ?? toUpstreamError(failure, false)
  const make =
    leg === 'prefill' ? pairErrors.prefill_worker_failed_to_start : pairErrors.decode_worker_failed_to_start
  const error = make.with({ status: own.status, cause: failure }, own.message)
  // A status that the engine has told counts as such: not every one of them may be tried elsewhere.
  if (failure.error === null) return { leg, error, status: 0, headers: null, failure }
  return { leg, error, status: own.status, headers: null, failure: null }
}
