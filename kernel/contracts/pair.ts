/**
 * Prefill/decode pairs: two workers share one call. The balance picks them; each connection mode that supports pairs has a
 * strategy that sends the requests.
 */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { PickLeg } from './policy.ts'
import type { RelayContext } from './relay-context.ts'
import type { Exchange, HeaderList, UpstreamFailure, UpstreamHandler, UpstreamRequest } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** One worker's part of a pair. */
export type PairLeg = Exclude<PickLeg, 'whole'>

export type PairRequests = { readonly [Leg in PairLeg]: UpstreamRequest }

/** The pair of one attempt, for its strategy. */
export interface PairCall {
  readonly ctx: RelayContext
  /** Canonical. */
  readonly model: string
  readonly prefill: WorkerEntry
  readonly decode: WorkerEntry
  /** Sends to one of them, with the remaining time as limit. @throws unsupported_connection_mode (501) */
  open(leg: PairLeg, request: UpstreamRequest, handler: UpstreamHandler): Exchange
  /** Reports the prefill worker's response status; that of the decode worker is reported by the call. */
  prefillAnswered(status: number): void
  /** Reports success of the prefill worker to its breaker. */
  prefillSucceeded(): void
}

/** Failure of a pair before its response, or failure of the prefill worker later. */
export interface LegFault {
  readonly leg: PairLeg
  /** The client's error, if no other worker is tried. */
  readonly error: GatewayError
  /** Response status of the worker; 0 without a response. */
  readonly status: number
  readonly headers: HeaderList | null
  /** Null if the worker responded. */
  readonly failure: UpstreamFailure | null
}

/** As for one worker, but failures of either worker before the response end the exchange with `onLegFailed`. */
export interface PairHandler extends UpstreamHandler {
  onLegFailed(fault: LegFault): void
}

export interface PairStrategy {
  /** Connection mode of both workers. */
  readonly mode: string
  /**
   * Builds the two requests from those that each worker would get alone.
   * @throws GatewayError; then nothing was sent
   */
  requests(pair: PairCall, whole: PairRequests): PairRequests
  /** Sends them, at once or one after the other; the result is one exchange, with the decode worker. */
  start(pair: PairCall, requests: PairRequests, handler: PairHandler): Exchange
}
