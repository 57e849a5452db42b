/** How a response is relayed: the request for the worker, and what is checked of its response. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { RequestFacts } from './request-facts.ts'
import type { WorkerEntry } from './worker.ts'

/**
 * How the worker reports token usage in a response of the route: in `usage`, in event streams only if `stream_options` asks
 * for it (chat and completions); in `usage` always (Responses, Messages); in `usage`, of the prompt alone (embeddings); or in
 * `meta_info` (SGLang's `/generate`).
 */
export type UsageReport = 'on_request' | 'always' | 'prompt' | 'meta_info'

/** How a response of a worker is passed on to the client. */
export interface RelayOptions {
  /** Model that the client sent; aliases are resolved and replaced in the body. Null accepts any worker. Default: the body's `model`. */
  readonly model?: string | null
  /**
   * Label of metrics; the worker's content type decides how the response is relayed. If true, a response of any other type than
   * a stream is a failure of the worker. Default: the label is the body's `stream`, and any type is relayed.
   */
  readonly stream?: boolean
  /** Path on the worker, with a leading slash. */
  readonly path: string
  /** Default POST. */
  readonly method?: string
  /** The only worker to use: no policy, no hook and no retry. Default: the balance picks by `model`. */
  readonly worker?: WorkerEntry
  /** Replace the client's headers of the same names: [name, value, …], names lower-case. */
  readonly headers?: readonly string[]
  /** Creates the completion check of an event stream. Default: a stream that ends in order by HTTP is complete. */
  readonly checkCompletion?: (request: RequestFacts) => StreamCompletionCheck
  /** The error that the client gets in place of a whole body of a success; null for none. Default: every body is passed on. */
  readonly checkBody?: (body: Buffer) => GatewayError | null
  /** As `RequestContext.openAfter`, for streams. Default: a stream waits for its worker. */
  readonly opensAfterMs?: number
  /** Default: the response reports no token usage. */
  readonly usage?: UsageReport
}

/** How a stream ended: with the last event of its format, with an error event of the worker, or before either. */
export type StreamEnd = 'complete' | 'error' | 'cut'

/** Completion check of an event stream: whether the stream reached the last event of its format, and what clients cannot read. */
export interface StreamCompletionCheck {
  /**
   * @param chunk a view, valid during the call
   * @returns the bytes for the client, as a view that is read before the next call; empty for none. @hot
   */
  pass(chunk: Buffer): Buffer
  /** Called when the worker has ended the stream or its connection: `cut` for a stream without the last event of its format. */
  end(): StreamEnd
  /** Bytes that were held back, for the client of a stream that was not cut. */
  rest(): Buffer
  /** Releases the check. */
  leave(): void
}
