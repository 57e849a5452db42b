/** The hooks: where a plugin may step into a request's life. Each has one kind and one timing. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Reply, RequestContext } from './request.ts'
import type { RouteDefinition } from './route.ts'
import type { HeaderList, UpstreamFailureKind } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** The attempt about to be sent; headers may be changed in place. */
export interface OutgoingAttempt {
  readonly worker: WorkerEntry
  readonly headers: HeaderList
}

/** The answer about to be sent on. */
export interface IncomingResponse {
  status: number
  /** May be changed in place; what says how the message is framed is the gateway's own and left out. */
  headers: HeaderList
  /** The whole body where it is known before the first byte leaves; null for streams. May be replaced. */
  body: Buffer | null
}

/** How one upstream attempt went. */
export interface AttemptReport {
  readonly worker: WorkerEntry
  /** 1-based. */
  readonly number: number
  /** Wire name of the policy that chose, `hook`, or `fixed` where the route named the worker. */
  readonly policy: string
  /** The policy's own words; null when it has none. */
  readonly explanation: string | null
  /** Candidates as they were at the choice; null for `fixed` and `hook`. */
  readonly candidates: readonly CandidateReport[] | null
  /** `performance.now()`, milliseconds. */
  readonly startedAtMs: number
  /** Of the response head; 0 when none came. */
  readonly answeredAtMs: number
  readonly endedAtMs: number
  /** Of the worker; 0 when none came. */
  readonly status: number
  /** Kind of the transport's failure; null when there was none. */
  readonly failure: UpstreamFailureKind | null
  readonly outcome: 'success' | 'failure' | 'retried' | 'cancelled'
}

/** A generation about to begin. A request that is relayed has none; one with tools may have many. */
export interface GenerationNotice {
  /** Within its request, 1-based. */
  readonly number: number
  /** As the client named it; null for any. */
  readonly model: string | null
}

export interface CandidateReport {
  readonly workerId: string
  readonly url: string
  readonly inFlight: number
  readonly breaker: 'closed' | 'open' | 'half_open'
  readonly isAvailable: boolean
}

export interface HookSignatures {
  /** First: a Reply answers the request. After the access check, before the handler. */
  onRequest: (ctx: RequestContext) => Reply | undefined | void | Promise<Reply | undefined | void>
  /** First: a worker slot, 0-based. Once per upstream attempt. */
  onPick: (ctx: RequestContext, model: string) => number | undefined | void
  /** Series: each generation of a request before its worker is picked; what it throws refuses that generation. */
  onGeneration: (ctx: RequestContext, generation: GenerationNotice) => void
  /** Series: may change the headers. Before each upstream attempt. */
  onUpstreamRequest: (ctx: RequestContext, attempt: OutgoingAttempt) => void | Promise<void>
  /** Series: may change status, headers and an unstreamed body. Before the client's first byte. */
  onResponse: (ctx: RequestContext, response: IncomingResponse) => void | Promise<void>
  /**
   * Series: whole server-sent events to events, in order. Called with one or more whole events of a streamed answer,
   * bytes as the worker sent them, and once more with an empty buffer and `isLast` when the stream has ended well.
   * May answer later: the worker is paused meanwhile. What is given back is sent as it is; it must be whole events.
   * The memory of `events` is the hook's.
   */
  onEvents: (ctx: RequestContext, events: Buffer, isLast: boolean) => Buffer | Promise<Buffer>
  /** Series: bytes to bytes. Per chunk of a streamed answer; an empty buffer drops it. The chunk's memory is reused after the call. */
  onChunk: (ctx: RequestContext, chunk: Buffer) => Buffer
  /** Series: error to error. Once, before the error body is made. A Reply is sent in its place and ends the series. */
  onError: (ctx: RequestContext, error: GatewayError) => GatewayError | Reply | Promise<GatewayError | Reply>
  /** Observe: at the end of each upstream attempt. */
  onAttempt: (ctx: RequestContext, attempt: AttemptReport) => void
  /** Observe: exactly once per request, whatever happened; what it throws or rejects with is logged, and nobody waits for it. */
  onDone: (ctx: RequestContext) => void | Promise<void>
}

export type HookName = keyof HookSignatures

export interface HookOptions {
  /** `own`: the routes of the plugin that hooks; `all`: every plugin's routes. Default `own`. */
  readonly scope?: 'own' | 'all'
  /** Place among the hooks of one name; without it, dependency order. */
  readonly order?: 'early' | 'late'
  /** Which routes of the scope; default: all of them. Asked once, at ready. */
  readonly routes?: (route: RouteDefinition) => boolean
  /** Request headers that the hook reads, lower-case; only headers that somebody declared are copied. */
  readonly headers?: readonly string[]
  /** The hook begins switched off and costs nothing until its switch turns it on. */
  readonly startsOff?: boolean
  /**
   * onResponse only: most bytes of an unstreamed answer that are held back for the hook; 0: status and headers only,
   * and no byte is held. Longer answers and event streams reach the hook with `body` null. Default 1 MiB.
   */
  readonly maxReplyBytes?: number
  /** The hook reads `ctx.requestHeaders`: its routes keep every header while it is on. */
  readonly readsAllHeaders?: boolean
  /**
   * Longest wait for a hook that answers later, in milliseconds; then the request fails with `hook_timeout` (500), which
   * names hook and plugin. 0: no limit, for hooks with limits of their own. Default 30,000. Not for observers.
   */
  readonly timeoutMs?: number
}

/** Turns a hook on and off on this thread, and says what it needs; requests under way keep what they began with. */
export interface HookSwitch {
  update(change: { isOn?: boolean; maxReplyBytes?: number; readsAllHeaders?: boolean }): void
}

/** One folded function per hook; null when nobody hooked, so that an unhooked route pays one branch. */
export type RouteHooks = { readonly [Name in HookName]: HookSignatures[Name] | null } & {
  /** Most bytes of an unstreamed answer to hold back for `onResponse`; 0 holds none. */
  readonly maxReplyBytes: number
  /** Every request header is kept, not only the declared ones. */
  readonly readsAllHeaders: boolean
}
