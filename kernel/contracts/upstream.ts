/** The upstream as plugins use it: open a call, or relay a response. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Call, CallHandler, OpenCall } from './call.ts'
import type { ModeControl } from './mode-control.ts'
import type { ModelParameters } from './model-targets.ts'
import type { SinkListener } from './relay-context.ts'
import type { RelayOptions } from './relay-options.ts'
import type { RequestContext } from './request.ts'
import type { HeaderList, UpstreamRequest } from './transport.ts'
import type { UsageEstimator } from './usage-estimator.ts'
import type { WorkerEntry } from './worker.ts'

/** Relay of an open call; the owner of the call passes on its events, from the head on. */
export interface JoinedRelay extends CallHandler, SinkListener {
  /** The client's request for one worker. Parameters as for `Call.requestFor`. */
  requestFor(
    worker: WorkerEntry,
    model: string,
    attempt: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest
}

export interface Upstream {
  /**
   * Opens a call: picks a worker, sends the request of `requestFor`, and retries on others until a response is passed on.
   * The handler is never called before this returns. Never throws.
   */
  open(call: Call, handler: CallHandler): OpenCall
  /**
   * Counts the token usage of relayed responses on this thread from now on; without a caller, and without a traffic
   * observer, relays do not look for it.
   */
  countUsage(): void
  readonly countsUsage: boolean
  /** Sets what counts the tokens of streams whose usage the worker has not reported. */
  estimateUsage(estimator: UsageEstimator): void
  /** True for a virtual model, whose calls ask with `Call.prepareFor` for each target. @param model as the client sent it */
  isVirtual(model: string | null): boolean
  /** Model of the first target of a virtual model; any other name as it is. @param model as the client sent it */
  firstTargetOf(model: string): string
  /** Canonical id of a model. @param model as the client sent it; null for any */
  canonicalModel(model: string | null): string
  /** The client's error for any failure of a call; errors without a table row are bugs and are logged. */
  toGatewayError(ctx: RequestContext, cause: unknown): GatewayError
  /** Streams the response of an open call to the client of the context. */
  joinRelay(ctx: RequestContext, options: RelayOptions, call: OpenCall): JoinedRelay
  /** Control operations of a connection mode; null if no plugin provides them. @param mode as in `WorkerEntry.connectionMode` */
  controlOf(mode: string): ModeControl | null
  /** Control operations of workers with the scheme of this URL. */
  controlFor(url: string): ModeControl | null
  controls(): readonly ModeControl[]
  /**
   * Request headers for a worker: the forwarded headers of the client and the worker's credentials.
   * @param own as `RelayOptions.headers`
   */
  headersFor(ctx: RequestContext, worker: WorkerEntry, own?: readonly string[]): HeaderList
  /**
   * The headers of a worker's response that clients receive: an allow-list, extended by
   * `kernel.upstream.forwardResponseHeaders`.
   */
  clientHeaders(headers: HeaderList): HeaderList
  /**
   * Sends the request's body to a picked worker or pair, and streams the response to the client. Other workers are tried
   * until the first byte is sent to the client. Never throws: errors become the client's response.
   */
  relay(ctx: RequestContext, options: RelayOptions): void
}
