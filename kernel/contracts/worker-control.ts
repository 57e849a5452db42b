/**
 * The control plane of one connection mode: how workers that are reached in one way are looked at, described and managed.
 * A transport sends; this says everything else that depends on how a worker is reached. Control and data threads may call
 * it; nothing here is on the hot path. Nobody outside a transport's own folder needs to compare modes or runtimes.
 */

import type { Logger } from './log.ts'
import type { ModeControl } from './mode-control.ts'
import type { ModelCard, RuntimeType, WorkerEntry } from './worker.ts'
import type { WorkerCall, WorkerReply } from './worker-reply.ts'

/** Whom a call goes to: a registered worker, or one that is about to be. */
export type WorkerTarget = Pick<WorkerEntry, 'url' | 'apiKey'> &
  Partial<Pick<WorkerEntry, 'dataParallel' | 'provider'>>

/** A worker as somebody asked for it, as far as describing it needs. */
export interface WorkerWish {
  readonly url: string
  readonly apiKey: string | null
  /** `unspecified` asks for detection. */
  readonly runtimeType: RuntimeType
  /** Null asks for discovery; an empty list is a wildcard on purpose. */
  readonly models: readonly ModelCard[] | null
  readonly labels: Readonly<Record<string, string>>
  /** The service behind the worker, where the registration names it. */
  readonly provider: string | null
  /** The configuration names the worker, not somebody who called the API: keys of the gateway's own may go to it. */
  readonly isConfigured: boolean
}

/** What describing a worker may use and must keep to. */
export interface DescribeTools {
  /** Aborted when the registration is cancelled or its time is over. */
  readonly signal: AbortSignal
  /** Waits without holding a place among the registrations that run. @throws the signal's reason */
  wait(waitMs: number): Promise<void>
  /** Says what keeps the worker from being described, to whoever looks at its registration meanwhile. */
  note(problem: string): void
  readonly log: Logger
  /** Null when health checks are off: the worker counts as up. */
  readonly health: { readonly path: string; readonly timeoutMs: number } | null
  /** The worker must be up within this. */
  readonly startupTimeoutMs: number
  /** Longest wait between two looks at a worker that is not up yet. */
  readonly checkIntervalMs: number
  /** Data-parallel ranks become a worker each. */
  readonly expandsRanks: boolean
  /**
   * The gateway's own keys for model lists, by name of the service that each is for. A key goes to that service only:
   * whoever may register workers could otherwise have it sent anywhere.
   */
  readonly serviceKeys: ReadonlyMap<string, string>
}

/** What a worker turned out to be. Survives JSON. */
export interface WorkerDescription {
  readonly runtimeType: RuntimeType
  /** Empty for a wildcard. */
  readonly models: readonly ModelCard[]
  /** Without those that the wish sets. */
  readonly labels: Readonly<Record<string, string>>
  /** As in `WorkerEntry.apis`. */
  readonly apis: readonly string[]
  /** A service of somebody else: it has no health route, so it is not checked unless asked for. */
  readonly isExternal: boolean
  /** Name of the service behind the worker, where its URL tells it. */
  readonly provider?: string
  /** Data-parallel ranks that become a worker each; absent where the engine is one worker. */
  readonly rankCount?: number
}

/** How busy one data-parallel rank is; -1 where it is not told. */
export interface RankLoad {
  /** 0-based. */
  readonly rank: number
  readonly runningRequests: number
  readonly waitingRequests: number
  /** Requests that it runs at most at the same time. */
  readonly maxRequests: number
  /** Prompt tokens that wait for prefill. */
  readonly queuedTokens: number
  /** Tokens in KV memory. */
  readonly usedTokens: number
  /** Tokens that KV memory holds at most. */
  readonly maxTokens: number
  /** KV memory in use, 0 to 1. */
  readonly kvUsage: number
  /** Generated; 0 where it is not told. */
  readonly tokensPerSecond: number
  /** Prompt tokens found in the prefix cache, 0 to 1. */
  readonly cacheHitRate: number
  /** What the engine itself calls its load, 0 to 1. */
  readonly utilization: number
  /** Absent where the engine does not serve one half of requests. */
  readonly pair?: PairLoad
}

/** How the hand-over of KV blocks goes, as one rank of a prefill or decode engine sees it; -1 where it is not told. */
export interface PairLoad {
  readonly role: 'prefill' | 'decode'
  /** Requests that wait at this half: for memory or a meeting, for the transfer, or put back. */
  readonly queuedRequests: number
  readonly transferMs: number
  /** Gigabytes a second. */
  readonly transferRate: number
}

/** What one engine says of its load. */
export interface EngineReport {
  /** ISO 8601, as the engine wrote it; null when it did not. */
  readonly timestamp: string | null
  /** At least one. */
  readonly ranks: readonly RankLoad[]
}

/** An engine's answer about its model or itself. */
export type EngineInfo =
  | { readonly kind: 'members'; readonly members: Readonly<Record<string, unknown>> }
  /** It has no such answer. */
  | { readonly kind: 'none' }
  /** Anything else that it said, which whoever asked gets as it is. */
  | { readonly kind: 'reply'; readonly reply: WorkerReply }

/** Work that an operator asks of an engine. */
export type EngineAction =
  | { readonly kind: 'flush_cache' }
  | { readonly kind: 'start_profile'; readonly options: Readonly<Record<string, unknown>> }
  | { readonly kind: 'stop_profile' }

/** Registered with `host.workerControl`; read through `workerControls`. */
export interface WorkerControl extends ModeControl {
  /** Engines that a registration may name, beside `unspecified`. */
  readonly runtimes: readonly RuntimeType[]

  /** True when the wish is for a service of somebody else, before anything is asked. */
  isExternal(wish: Pick<WorkerWish, 'url' | 'runtimeType' | 'provider'>): boolean
  /**
   * One look at a worker's health.
   * @param path of the health route, for modes that have paths
   * @returns null when it is well, else why not; undefined when the gateway itself had no means to ask, which says
   *   nothing of the worker; never rejects
   */
  probe(target: WorkerTarget, path: string, timeoutMs: number): Promise<string | null | undefined>
  /**
   * Waits until the worker is up, and finds out what it is.
   * @throws worker_unreachable, model_discovery_failed, rank_discovery_failed
   */
  describe(wish: WorkerWish, tools: DescribeTools): Promise<WorkerDescription>

  /**
   * How busy an engine is; null when it does not tell. Never rejects. Absent: engines of this mode never tell. A changed
   * worker is another entry, so what is remembered of one, such as what it lacks, hangs on the entry.
   */
  loads?(worker: WorkerEntry): Promise<EngineReport | null>
  /** Forgets what is remembered of a worker: it was away, and may be another engine now. */
  forget?(worker: WorkerEntry): void
  /** The engine's own metrics as Prometheus text; null when it has none. Never rejects. */
  metricsText?(target: WorkerTarget, timeoutMs: number): Promise<string | null>
  /** What the engine says of its model or of itself. @throws UpstreamFailure */
  info?(worker: WorkerEntry, about: 'model' | 'server', timeoutMs: number): Promise<EngineInfo>
  /** Kinds of `perform` that engines of this mode take. */
  readonly actions: readonly EngineAction['kind'][]
  /** @returns null when the engine took it, else why not; never rejects */
  perform?(target: WorkerTarget, action: EngineAction, timeoutMs: number): Promise<string | null>

  /**
   * One call outside the hot path, with the worker's key; any status resolves. Absent: workers of this mode take none.
   * @throws UpstreamFailure
   */
  call?(worker: WorkerTarget, call: WorkerCall): Promise<WorkerReply>
}

/** The controls of one thread, whole. */
export interface WorkerControls {
  /** Who looks after workers of a connection mode, where a plugin does. @param mode as in `WorkerEntry.connectionMode` */
  controlOf(mode: string): WorkerControl | null
  /** Who looks after workers with URLs like this one, by its scheme. */
  controlFor(url: string): WorkerControl | null
  controls(): readonly WorkerControl[]
  /**
   * A call outside the hot path, for workers whose connection mode takes such calls. Any status resolves; transport
   * trouble rejects with UpstreamFailure, which a handler may leave uncaught: the client then gets the documented 502 or
   * 504.
   * @throws unsupported_connection_mode (501)
   */
  call(worker: WorkerTarget, call: WorkerCall): Promise<WorkerReply>
}
