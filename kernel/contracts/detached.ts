/**
 * Work without a client. Detached work, such as a background response, runs as a request (identity, hooks, limits, counters, log line,
 * traces), and its caller gets the response.
 */
import type { Identity } from './auth.ts'
import type { RequestContext } from './request.ts'
import type { Method } from './route.ts'
import type { HeaderList } from './transport.ts'

/** Work to run without a client, as a request of a declared route. */
export interface DetachedWork {
  /** A declared route whose hooks, limits, endpoint and error format apply; its handler and access check do not run. */
  readonly route: { readonly method: Method; readonly path: string }
  /** Caller that the work counts for; null if routes are open. */
  readonly identity: Identity | null
  /**
   * It continues an accepted request: the key of its identity is checked again, and of the limits only tokens and concurrency
   * count. Default false.
   */
  readonly isContinuation?: boolean
  /** Default: a new id. */
  readonly requestId?: string
  /** [name, value, …], names lower-case: request headers that calls to workers may forward. Default none. */
  readonly headers?: HeaderList
  /** Default empty. */
  readonly body?: Buffer
  /** Replaces the route's handler after the onRequest hooks. Must send a response, as a handler must. */
  readonly run: (ctx: RequestContext) => void | Promise<void>
}

/** Result of detached work. */
export interface DetachedOutcome {
  /** Status of the response; 499 if cancelled before one. */
  readonly status: number
  /** Code of an error response; null otherwise. */
  readonly errorCode: string | null
  /** The first 1 MiB of the response body. */
  readonly body: Buffer
}

/** Detached work that runs. */
export interface Detached {
  /** Never rejects. */
  readonly done: Promise<DetachedOutcome>
  /** Cancels as if the client had disconnected: calls to workers are aborted. Safe at any time, also twice. */
  cancel(): void
}

/** Background work: it runs without a request and must end before the gateway does. */
export interface BackgroundWork {
  /** Settles when the work has ended; rejections are logged and counted. */
  readonly done: Promise<unknown>
  /** Called once if the work has not ended at the end of the grace period, to save its progress. */
  cancel?(): void
}
