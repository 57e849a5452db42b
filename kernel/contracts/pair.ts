/**
 * Prefill/decode pairs: two workers share one call. Which two is the balance's choice; how they work together depends on
 * how they are reached, so each connection mode that can do it brings a strategy.
 */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { PickLeg } from './policy.ts'
import type { RelayContext } from './reply-sink.ts'
import type { Exchange, HeaderList, UpstreamFailure, UpstreamHandler, UpstreamRequest } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** One half of the work of a pair. */
export type PairLeg = Exclude<PickLeg, 'whole'>

/** What goes to both, or what each would get if it were alone. */
export type PairRequests = { readonly [Leg in PairLeg]: UpstreamRequest }

/** The pair of one attempt, as a strategy sees it. */
export interface PairCall {
  readonly ctx: RelayContext
  /** Canonical. */
  readonly model: string
  readonly prefill: WorkerEntry
  readonly decode: WorkerEntry
  /** Sends to one of them, within the time that is left. @throws unsupported_connection_mode (501) */
  open(leg: PairLeg, request: UpstreamRequest, handler: UpstreamHandler): Exchange
  /** The prefill worker's answer has begun, for who watches attempts; the decode worker's is the call's own. */
  prefillAnswered(status: number): void
  /** The prefill worker has done its part: its breaker is told. */
  prefillSucceeded(): void
}

/** Why a pair failed before its answer began, or for the sake of the prefill worker later. */
export interface LegFault {
  readonly leg: PairLeg
  /** What the client is told, if nobody else is tried. */
  readonly error: GatewayError
  /** Of the worker's answer; 0 when none came. */
  readonly status: number
  readonly headers: HeaderList | null
  /** Null when the worker answered. */
  readonly failure: UpstreamFailure | null
}

/** As with one worker, but what goes wrong with either before the answer begins is told by `onLegFailed`, and that is the last. */
export interface PairHandler extends UpstreamHandler {
  onLegFailed(fault: LegFault): void
}

export interface PairStrategy {
  /** Connection mode of both workers. */
  readonly mode: string
  /**
   * The two requests, from what each worker would get alone.
   * @throws GatewayError; then nothing was sent
   */
  requests(pair: PairCall, whole: PairRequests): PairRequests
  /** Sends them, both at once or one after the other; seen from outside as one exchange, with the decode worker. */
  start(pair: PairCall, requests: PairRequests, handler: PairHandler): Exchange
}
