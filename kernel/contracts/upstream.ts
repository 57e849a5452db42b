/** The upstream as plugins use it: open a call, or relay a response. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Call, CallHandler, OpenCall } from './call.ts'
import type { SinkListener } from './relay-context.ts'
import type { RelayOptions } from './relay-options.ts'
import type { RequestContext } from './request.ts'
import type { HeaderList } from './transport.ts'
import type { WorkerEntry } from './worker.ts'
import type { ModeControl } from './worker-control.ts'

/** Relay of an open call; the owner of the call passes on its events, from the head on, and sends its request. */
export interface JoinedRelay extends CallHandler, SinkListener, Pick<Call, 'requestFor'> {}

/** A request of a plugin to a model. */
export interface ModelQuestion {
  /** Canonical id, alias or virtual model; replaced in the body by the worker's name for it. Null lets any worker answer. */
  readonly model: string | null
  /** Path on the worker, with a leading slash, such as `/v1/embeddings`. */
  readonly path: string
  /** Sent as JSON. */
  readonly body: Readonly<Record<string, unknown>>
  /** Format of the path, such as `embeddings`: only workers that list it are picked. Default: any worker of the model. */
  readonly api?: string
  /** Longer responses are an error. Default 16 MiB. */
  readonly maxBytes?: number
}

/** Answer of a model to a plugin. */
export interface ModelAnswer {
  /** Of the worker, once retries are over; may be an error status. */
  readonly status: number
  /** Parsed JSON: at most 128 levels deep. Not validated. */
  readonly body: unknown
}

/** Sends requests of plugins to workers. */
export interface Upstream {
  /**
   * Opens a call: picks a worker, sends the request of `requestFor`, and retries on others until a response is passed on.
   * The handler is never called before this returns. Never throws.
   */
  open(call: Call, handler: CallHandler): OpenCall
  /**
   * Asks a model for a plugin, such as for an embedding or a verdict: picks a worker, with the retries and limits of any
   * call. The token usage counts for the request, and so for its tenant. The call is aborted when the request ends.
   *
   * Works for HTTP workers that serve the path. To generate with workers of every kind use `Generations.collect`, to embed
   * with gRPC workers `Embeddings`. Without a request, call it in the work of `host.detached`.
   *
   * @param ctx request that is not complete
   * @throws GatewayError: a selection error (404, 503) or an upstream error (502, 504) after all attempts,
   *   read_response_body_failed for a long response, ask_response_invalid if it is not JSON, ask_after_end; UpstreamFailure
   *   if the client disconnects or the request fails meanwhile
   * @example const { status, body } = await host.upstream.ask(ctx, { model: 'embed', path: '/v1/embeddings', body: { input } })
   */
  ask(ctx: RequestContext, question: ModelQuestion): Promise<ModelAnswer>
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
  /** Control operations of all connection modes; for those of workers see `workerControls`. */
  controls(): readonly ModeControl[]
  /**
   * Request headers for a worker: the forwarded headers of the client and the worker's credentials.
   * @param own as `RelayOptions.headers`
   * @param hasCredentials true if `own` holds the worker's credentials: none are added, and the client's are not forwarded
   */
  headersFor(
    ctx: RequestContext,
    worker: WorkerEntry,
    own?: readonly string[],
    hasCredentials?: boolean,
  ): HeaderList
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

/** A stream whose usage the worker did not report. */
export interface UnreportedStream {
  /** Canonical id. */
  readonly model: string
  /** Endpoint of the route, such as `chat`, whose format the body has. */
  readonly endpoint: string
  /** The client's request; null for one that was too large to be kept. */
  readonly body: Buffer | null
  /** Text that the client has received, or its beginning. */
  readonly text: string
}

export interface StreamCount {
  /** Null if the prompt of the request cannot be counted. */
  readonly input: number | null
  /** Tokens of the text. */
  readonly output: number
}

/** Counts the tokens of streams whose usage the worker did not report. Set with `Upstream.estimateUsage`. */
export interface UsageEstimator {
  /** True if a tokenizer of the model is loaded. @param model canonical */
  covers(model: string): boolean
  /** Never rejects. @returns null if the text cannot be counted, or too many streams are being counted */
  count(stream: UnreportedStream): Promise<StreamCount | null>
}
