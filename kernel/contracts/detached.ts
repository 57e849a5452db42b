/**
 * Work without a client: a background response, a warm-up, a try-out. It runs as a request of its own (identity, hooks,
 * limits, counters, log line, traces), and its reply goes to whoever began it.
 */
import type { Identity } from './auth.ts'
import type { RequestContext } from './request.ts'
import type { Method } from './route-facts.ts'
import type { HeaderList } from './transport.ts'

export interface DetachedWork {
  /** A declared route whose hooks, limits, endpoint and error format hold; its handler and access check do not run. */
  readonly route: { readonly method: Method; readonly path: string }
  /** On whose behalf; null where routes are open. */
  readonly identity: Identity | null
  /** Default: made anew. */
  readonly requestId?: string
  /** [name, value, …], lower-case: what calls to workers may read and pass on. Default none. */
  readonly headers?: HeaderList
  /** Default empty. */
  readonly body?: Buffer
  /** In place of the route's handler, once the hooks have let it in. Must end the context with a reply, as a handler must. */
  readonly run: (ctx: RequestContext) => void | Promise<void>
}

export interface DetachedOutcome {
  /** Of the reply; 499 when it was cancelled before one. */
  readonly status: number
  /** Of an error reply; null otherwise. */
  readonly errorCode: string | null
  /** Of the reply, the first 1 MiB. */
  readonly body: Buffer
}

export interface Detached {
  /** Never rejects. */
  readonly done: Promise<DetachedOutcome>
  /** As if its client had left: calls to workers stop. Safe at any time, also twice. */
  cancel(): void
}
