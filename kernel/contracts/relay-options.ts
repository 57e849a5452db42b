/** How a response is relayed: the request for the worker, and the format of its response. */
import type { ResponseFormat } from './response-format.ts'
import type { WorkerEntry } from './worker.ts'

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
  /** Filters the workers of the model. Default: all. */
  readonly accepts?: (worker: WorkerEntry) => boolean
  /** Replace the client's headers of the same names: [name, value, …], names lower-case. */
  readonly headers?: readonly string[]
  /**
   * Default: responses report no usage, a stream that ends in order by HTTP is complete, and every byte is passed on.
   */
  readonly format?: ResponseFormat
  /** As `RequestContext.openAfter`, for streams. Default: a stream waits for its worker. */
  readonly opensAfterMs?: number
}
