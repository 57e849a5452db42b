/** The seven hooks: where a plugin may step into a request's life. Each has one kind and one timing. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Reply, RequestContext } from './request.ts'
import type { HeaderList } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** The attempt about to be sent; headers may be changed in place. */
export interface OutgoingAttempt {
  readonly worker: WorkerEntry
  readonly headers: HeaderList
}

/** The answer about to be sent on. */
export interface IncomingResponse {
  status: number
  /** May be changed in place. */
  headers: HeaderList
  /** The whole body where it is known before the first byte leaves; null for streams. May be replaced. */
  body: Buffer | null
}

export interface HookSignatures {
  /** First: a Reply answers the request. After the access check, before the handler. */
  onRequest: (ctx: RequestContext) => Reply | undefined | void | Promise<Reply | undefined | void>
  /** First: a worker slot, 0-based. Once per upstream attempt. */
  onPick: (ctx: RequestContext, model: string) => number | undefined | void
  /** Series: may change the headers. Before each upstream attempt. */
  onUpstreamRequest: (ctx: RequestContext, attempt: OutgoingAttempt) => void | Promise<void>
  /** Series: may change status, headers and an unstreamed body. Before the client's first byte. */
  onResponse: (ctx: RequestContext, response: IncomingResponse) => void | Promise<void>
  /** Series: bytes to bytes. Per chunk of a streamed answer; an empty buffer drops it. The chunk's memory is reused after the call. */
  onChunk: (ctx: RequestContext, chunk: Buffer) => Buffer
  /** Series: error to error. Once, before the error body is made. */
  onError: (ctx: RequestContext, error: GatewayError) => GatewayError | Promise<GatewayError>
  /** Observe: exactly once per request, whatever happened; what it throws or rejects with is logged, and nobody waits for it. */
  onDone: (ctx: RequestContext) => void | Promise<void>
}

export type HookName = keyof HookSignatures

export interface HookOptions {
  /** `own`: the routes of the plugin that hooks; `all`: every plugin's routes. Default `own`. */
  readonly scope?: 'own' | 'all'
  /** Place among the hooks of one name; without it, dependency order. */
  readonly order?: 'early' | 'late'
}

/** One folded function per hook; null when nobody hooked, so that an unhooked route pays one branch. */
export type RouteHooks = { readonly [Name in HookName]: HookSignatures[Name] | null }
