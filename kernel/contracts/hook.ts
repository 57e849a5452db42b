/** The hooks of a request. */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { GenerationEvent } from './generation/generation.ts'
import type { GenerationRequest } from './generation/generation-request.ts'
import type { PromptText } from './generation/prompt-text.ts'
import type { TextEditor, TextStream } from './generation/text-stream.ts'
import type { RequestContext, RouteDefinition, WholeResponse } from './request.ts'
import type { HeaderList, UpstreamFailureKind } from './transport.ts'
import type { WorkerEntry } from './worker.ts'

/** An attempt before it is sent; headers may be changed in place, the body may be replaced. */
export interface OutgoingAttempt {
  readonly worker: WorkerEntry
  /** On the worker. */
  readonly path: string
  readonly headers: HeaderList
  /** As the worker gets it: JSON over HTTP, messages over gRPC, which must stay. */
  body: Buffer | null
}

/** A response before it is sent to the client. */
export interface IncomingResponse {
  status: number
  /** May be changed in place; without framing headers, which the gateway writes. */
  headers: HeaderList
  /** The whole body if it is known before the first byte is sent; null for streams. May be replaced. */
  body: Buffer | null
}

/** One finished attempt at a worker, for `onAttempt`. */
export interface AttemptReport {
  readonly worker: WorkerEntry
  /** 1-based. */
  readonly number: number
  /** Name of the policy, `hook`, or `fixed` if the call had a fixed worker. */
  readonly policy: string
  /** Explanation of the policy; null without one. */
  readonly explanation: string | null
  /** Candidates at the time of the choice; null for `fixed` and `hook`. */
  readonly candidates: readonly CandidateReport[] | null
  /** `performance.now()`, milliseconds. */
  readonly startedAtMs: number
  /** Time of the response head; 0 without one. */
  readonly answeredAtMs: number
  readonly endedAtMs: number
  /** Response status; 0 without a response. */
  readonly status: number
  /** Kind of the transport's failure; null without one. */
  readonly failure: UpstreamFailureKind | null
  /** What the worker sent or how the attempt failed; null for attempts that did not fail. */
  readonly error: WorkerErrorText | null
  readonly outcome: 'success' | 'failure' | 'retried' | 'cancelled'
}

/** Bounded, on one line, without credentials. Read it in `onDone`: a body may still arrive when the attempt is reported. */
export interface WorkerErrorText {
  readonly workerUrl: string
  readonly text: string
}

/**
 * A generation before it starts, in one form for every client format. A request whose bytes pass through to a worker has none
 * unless a hook `needsGenerations`; one with tools may have many.
 */
export interface OpeningGeneration {
  /** Number of the generation in its request, 1-based. */
  readonly number: number
  /** As the client sent it; null for any. */
  readonly model: string | null
  /** The client receives a stream. */
  readonly stream: boolean
  /** May be replaced: the worker gets the new one. */
  request: GenerationRequest
  /**
   * Passes every event of the answer through a function: it returns the event, another one in its place, or null to drop it;
   * `started` and `finished` cannot be dropped.
   * Functions run in the order of their calls, before `onText` hooks. Only for generations that the gateway reads.
   */
  mapEvents(map: (event: GenerationEvent) => GenerationEvent | null): void
}

/** The whole answer, from `started` to `finished`; a `started` that is kept beyond its request has `worker: null`. */
export type GenerationAnswer = readonly GenerationEvent[]

/** State of one candidate when the worker of an attempt was picked. */
export interface CandidateReport {
  readonly workerId: string
  readonly url: string
  readonly inFlight: number
  /**
   * Requests in flight with this one, weighed by the recent latency of the worker: what load policies compare without load reports;
   * lower is preferred.
   */
  readonly loadScore: number
  readonly breaker: 'closed' | 'open' | 'half_open'
  readonly isAvailable: boolean
  /** It fails many of its recent requests, or has stalled: others are preferred. */
  readonly isSuspect: boolean
}

/** Signature of each hook by its name. */
export interface HookSignatures {
  /** First: a WholeResponse ends the request. After the access check, before the handler. */
  onRequest: (
    ctx: RequestContext,
  ) => WholeResponse | undefined | void | Promise<WholeResponse | undefined | void>
  /** First: a worker slot, 0-based. Once per upstream attempt. */
  onPick: (ctx: RequestContext, model: string) => number | undefined | void
  /**
   * First: each generation of a request before its worker is picked. May change it; an answer is sent in place of a worker's; an
   * exception rejects it.
   */
  onGeneration: (
    ctx: RequestContext,
    generation: OpeningGeneration,
  ) => GenerationAnswer | undefined | void | Promise<GenerationAnswer | undefined | void>
  /**
   * Series: text to text. Called once for each text of an answer; the editor that it returns receives the pieces. Requests of
   * routes with such a hook are always generations, so that the gateway reads every answer.
   */
  onText: (ctx: RequestContext, stream: TextStream) => TextEditor | null | undefined | void
  /**
   * Series: texts to texts. Called with every text of a request to a model, behind the translation: those of the client, of earlier
   * turns and of tools, for each generation, embedding and relayed body, and for questions of plugins. Returns one string for each;
   * none leaves them as they are. A GatewayError that it throws refuses the request. Names, settings, addresses, files and token
   * ids are no texts.
   */
  onPromptText: (
    ctx: RequestContext,
    texts: readonly PromptText[],
  ) => readonly string[] | undefined | void | Promise<readonly string[] | undefined | void>
  /** Series: may change the headers and the body. Before each upstream attempt. */
  onUpstreamRequest: (ctx: RequestContext, attempt: OutgoingAttempt) => void | Promise<void>
  /** Series: may change status, headers and an unstreamed body. Before the client's first byte. */
  onResponse: (ctx: RequestContext, response: IncomingResponse) => void | Promise<void>
  /**
   * Series: server-sent events to events, in order. Called with one or more whole events of a streamed response as the
   * worker sent them, and once more with an empty buffer and `isLast` when the stream has ended in order. May be
   * asynchronous: the worker is paused meanwhile. The result must be whole events. The hook owns the memory of `events`.
   */
  onEvents: (ctx: RequestContext, events: Buffer, isLast: boolean) => Buffer | Promise<Buffer>
  /** Series: error to error. Once, before the error body is made. A WholeResponse replaces the error and ends the series. */
  onError: (
    ctx: RequestContext,
    error: GatewayError,
  ) => GatewayError | WholeResponse | Promise<GatewayError | WholeResponse>
  /** Observe: at the end of each upstream attempt. */
  onAttempt: (ctx: RequestContext, attempt: AttemptReport) => void
  /** Observe: exactly once per request. Exceptions and rejections are logged; it is not awaited. */
  onDone: (ctx: RequestContext) => void | Promise<void>
}

/** Names of the hooks. */
export type HookName = keyof HookSignatures

/** On which requests a hook runs, when, and for how long it may wait. */
export interface HookOptions {
  /** `own`: routes of the plugin; `all`: routes of every plugin. Default `own`. */
  readonly scope?: 'own' | 'all'
  /** Order among the hooks of one name; default: dependency order. */
  readonly order?: 'early' | 'late'
  /** Filters the routes of the scope; default: all. Called when routes are compiled. */
  readonly routes?: (route: RouteDefinition) => boolean
  /** Request headers that the hook reads, lower-case; only declared headers are kept. */
  readonly headers?: readonly string[]
  /** The hook is off until its switch turns it on. */
  readonly startsOff?: boolean
  /**
   * onResponse only: largest body of an unstreamed response that is held back for the hook, bytes; 0: status and headers
   * only. Longer responses and event streams reach the hook with `body` null. Default 1 MiB.
   */
  readonly maxResponseBytes?: number
  /**
   * onGeneration only: requests of the routes whose bytes would pass through to workers become generations as well, which costs
   * the reading of each answer. Default false.
   */
  readonly needsGenerations?: boolean
  /** The hook reads `ctx.requestHeaders`, so its routes keep every header while it is on. */
  readonly readsAllHeaders?: boolean
  /**
   * Deadline of an asynchronous hook, milliseconds; then the request fails with `hook_timeout` (500). 0 disables it, for
   * hooks with limits of their own. Default 30,000. Not for observers.
   */
  readonly timeoutMs?: number
}

/** Switches a hook on this thread and changes its options; running requests keep the previous state. */
export interface HookSwitch {
  update(change: { isOn?: boolean; maxResponseBytes?: number; readsAllHeaders?: boolean }): void
}

/** One combined function per hook name; null without hooks, which costs one branch. */
export type RouteHooks = { readonly [Name in HookName]: HookSignatures[Name] | null } & {
  /** Largest body to hold back for `onResponse`, bytes; 0 for none. */
  readonly maxResponseBytes: number
  /** True keeps every request header, not only the declared ones. */
  readonly readsAllHeaders: boolean
  /** True if answers must be read: no bytes pass through. */
  readonly needsGenerations: boolean
}
