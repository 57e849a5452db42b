/** What plugins see of the way to workers: open a call, or relay an answer. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Call, CallHandler, OpenCall } from './call.ts'
import type { ModeControl } from './mode-control.ts'
import type { SinkListener } from './reply-sink.ts'
import type { RequestContext } from './request.ts'
import type { HeaderList, UpstreamRequest } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

export interface RelayOptions {
  /** As the client sent it; aliases are resolved here and rewritten in the body. Null takes any worker. Default: what the body says. */
  readonly model?: string | null
  /** The client asked for a stream; only a label, the worker's content type decides how the answer is relayed. Default: what the body says. */
  readonly stream?: boolean
  /** Path on the worker, with a leading slash. */
  readonly path: string
  /** Default POST. */
  readonly method?: string
  /** Sends to exactly this worker: no policy and no hook chooses, and nobody else is tried. Default: the balance picks by `model`. */
  readonly worker?: WorkerEntry
  /** Sent to the worker too, in place of the client's of the same names: [name, value, …], names lower-case. */
  readonly headers?: readonly string[]
  /** For each event stream that is passed on. Default: what a worker ends in order by HTTP is whole. */
  readonly judge?: () => StreamJudge
}

/** Sees an event stream pass, and says whether it was whole by its format. */
export interface StreamJudge {
  /** A view, valid during the call. @hot */
  take(chunk: Buffer): void
  /** The worker has ended it in order. One that is not whole counts and is told as broken off. */
  isWhole(): boolean
  /** Nothing more is asked. */
  leave(): void
}

/** The relay of an answer whose call somebody else has opened; it is told what the call tells, from the head on. */
export interface JoinedRelay extends CallHandler, SinkListener {
  /** The client's bytes for one worker. @param model canonical */
  requestFor(worker: WorkerEntry, model: string): UpstreamRequest
}

export interface Upstream {
  /**
   * Opens a call: picks a worker, sends what `requestFor` makes for it, tries others while nothing was passed on. What
   * comes is told to the handler, never before this has returned. Never throws.
   */
  open(call: Call, handler: CallHandler): OpenCall
  /** Canonical id of a model. @param model as a client named it; null for any */
  canonicalModel(model: string | null): string
  /** What a client is told of anything that went wrong on the way to workers; what has no name is a bug and is logged whole. */
  toGatewayError(ctx: RequestContext, cause: unknown): GatewayError
  /** Streams the answer of an open call to the client of the context. */
  joinRelay(ctx: RequestContext, options: RelayOptions, call: OpenCall): JoinedRelay
  /** Who looks after workers of a connection mode, where a plugin does. @param mode as in `WorkerEntry.connectionMode` */
  controlOf(mode: string): ModeControl | null
  /** Who looks after workers with URLs like this one, by its scheme. */
  controlFor(url: string): ModeControl | null
  controls(): readonly ModeControl[]
  /**
   * Headers for a worker on behalf of a context: what may pass on of the client's, and the worker's credentials.
   * @param own as `RelayOptions.headers`
   */
  headersFor(ctx: RequestContext, worker: WorkerEntry, own?: readonly string[]): HeaderList
  /**
   * Sends the request's body to a picked worker, or to a pair of them, and streams the answer to the client. While the
   * client has seen nothing, other workers are tried. Never throws: what goes wrong is the client's reply.
   */
  relay(ctx: RequestContext, options: RelayOptions): void
}
