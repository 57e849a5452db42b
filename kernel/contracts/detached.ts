/**
 * Work without a client: a background response, a warm-up, a trial run. It runs as a request of its own (identity, hooks,
 * limits, counters, log line, traces); its response is returned to the plugin that started it.
 */
import type { Identity } from './auth.ts'
import type { RequestContext } from './request.ts'
import type { Method } from './route-facts.ts'
import type { HeaderList } from './transport.ts'

export interface DetachedWork {
  /** A declared route whose hooks, limits, endpoint and error format apply; its handler and access check do not run. */
  readonly route: { readonly method: Method; readonly path: string }
  /** Identity that the work runs as; null where routes need no key. */
  readonly identity: Identity | null
  /** Default: a new one. */
  readonly requestId?: string
  /** [name, value, …], names lower-case: headers that calls to workers may read and forward. Default none. */
  readonly headers?: HeaderList
  /** Default empty. */
  readonly body?: Buffer
  /** Runs in place of the route's handler, after the `onRequest` hooks. Must end the context with a response. */
  readonly run: (ctx: RequestContext) => void | Promise<void>
}

export interface DetachedOutcome {
  /** Of the response; 499 when it was cancelled before one. */
  readonly status: number
  /** Of an error response; null otherwise. */
  readonly errorCode: string | null
  /** The first 1 MiB of the response. */
  readonly body: Buffer
}

export interface Detached {
  /** Never rejects. */
  readonly done: Promise<DetachedOutcome>
  /** Stops calls to workers, as if a client had disconnected. Safe at any time, also twice. */
  cancel(): void
}
