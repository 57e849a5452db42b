/**
 * Control operations of one connection mode: probes, discovery, load and management of its workers, outside the hot path.
 * Code outside a transport's folder need not compare connection modes or runtimes.
 */
import type { Logger } from './log.ts'
import type { RequestContext } from './request.ts'
import type { HeaderList } from './transport.ts'
import type { ModelCard, RuntimeType, WorkerEntry } from './worker.ts'

/** Where an engine differs from the formats that it serves. */
export interface EngineQuirks {
  /** Usage is that of the first choice or prompt, and in streams that of each choice apart. */
  readonly reportsPerChoice?: boolean
  /** It continues after a stop string, or keeps it in the text. */
  readonly mistakesStops?: boolean
  /** A whole answer that continues an assistant message begins with that message; a stream does not. */
  readonly repeatsPrefill?: boolean
  /** A completion has one prompt, which is a text. */
  readonly takesOneText?: boolean
  /** The chat template has no tools, so that the model sees none. */
  readonly ignoresTools?: boolean
}

/** The part of a mode's control operations that the kernel uses; `WorkerControl` extends it for plugins. */
export interface ModeControl {
  /** As in `WorkerEntry.connectionMode`. */
  readonly mode: string
  /** URL schemes of its workers, without colon, such as `http`. */
  readonly schemes: readonly string[]
  /**
   * Writes the credential headers of a worker. Called for each request to a worker of the mode, external or not.
   *
   * @param mayPassOn true if a client's authorization may be forwarded: it is no key of the gateway
   * @returns false if a bearer token is sufficient; then nothing was written
   */
  writeCredentials?(
    headers: HeaderList,
    ctx: RequestContext,
    worker: WorkerEntry,
    mayPassOn: (authorization: string) => boolean,
  ): boolean
  /** Of the engine of a worker. */
  quirks?(worker: WorkerEntry): EngineQuirks
  /** Called after every plugin has stopped. */
  close?(): void
}

/** A control call to a worker, outside the hot path. */
export interface WorkerCall {
  readonly method: string
  /** Appended to the worker's base URL. */
  readonly path: string
  readonly headers?: HeaderList
  readonly body?: string | Buffer
  /** Timeout of the whole call, milliseconds. */
  readonly timeoutMs: number
  /** Longer bodies fail the call. Default 16 MiB. */
  readonly maxBodyBytes?: number
}

/** A buffered response of a worker. */
export interface WorkerResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
  header(name: string): string | undefined
  /** @throws if the body is not JSON */
  json(): unknown
}

/** Target of a call: a registered worker, or one in registration. */
export type WorkerTarget = Pick<WorkerEntry, 'url' | 'apiKey'> &
  Partial<Pick<WorkerEntry, 'dataParallel' | 'provider'>>

/** A requested registration, as far as discovery needs it. */
export interface WorkerRegistration {
  readonly url: string
  readonly apiKey: string | null
  /** `unspecified` requests detection. */
  readonly runtimeType: RuntimeType
  /** Null requests discovery; an empty list is a wildcard. */
  readonly models: readonly ModelCard[] | null
  readonly labels: Readonly<Record<string, string>>
  /** Those of `labels` that the configuration file sets; absent for a worker registered through the API. */
  readonly configuredLabels?: Readonly<Record<string, string>>
  /** Provider in the registration; null without one. */
  readonly provider: string | null
  /** The worker is in the configuration and was not registered by the API, so the gateway's keys may be sent to it. */
  readonly isConfigured: boolean
}

/** Tools and limits for the discovery of a worker. */
export interface DescribeTools {
  /** Aborted if the registration is cancelled or times out. */
  readonly signal: AbortSignal
  /** Waits without occupying a slot for concurrent registrations. @throws the signal's reason */
  wait(waitMs: number): Promise<void>
  /** Sets the current problem, which the registration shows. */
  note(problem: string): void
  readonly log: Logger
  /** Null if health checks are disabled: the worker counts as up. */
  readonly health: { readonly path: string; readonly timeoutMs: number } | null
  /** Limit until the worker must be up. */
  readonly startupTimeoutMs: number
  /** Longest interval between probes of a worker that is not up yet. */
  readonly checkIntervalMs: number
  /** True if each data-parallel rank becomes a worker. */
  readonly expandsRanks: boolean
  /**
   * The gateway's keys for model lists, by service. A key is sent to that service only, so that a registration cannot
   * redirect it.
   */
  readonly serviceKeys: ReadonlyMap<string, string>
}

/** Result of the discovery of a worker. Survives JSON. */
export interface WorkerDescription {
  readonly runtimeType: RuntimeType
  /** Empty for a wildcard. */
  readonly models: readonly ModelCard[]
  /** Without those of the registration. */
  readonly labels: Readonly<Record<string, string>>
  /** As in `WorkerEntry.apis`. */
  readonly apis: readonly string[]
  /** A third-party service: it has no health route and is not probed by default. */
  readonly isExternal: boolean
  /** Provider, if the URL identifies it. */
  readonly provider?: string
  /** Number of data-parallel ranks that become workers; absent if the engine is one worker. */
  readonly rankCount?: number
  /** What an operator should correct. */
  readonly warnings?: readonly string[]
}

/** Load of one data-parallel rank; -1 for unknown values. */
export interface RankLoad {
  /** 0-based. */
  readonly rank: number
  readonly runningRequests: number
  readonly waitingRequests: number
  /** Largest number of concurrent requests. */
  readonly maxRequests: number
  /** Prompt tokens waiting for prefill. */
  readonly queuedTokens: number
  /** Tokens in KV memory. */
  readonly usedTokens: number
  /** Capacity of KV memory in tokens. */
  readonly maxTokens: number
  /** KV memory in use, 0 to 1. */
  readonly kvUsage: number
  /** Generated tokens per second; 0 if unknown. */
  readonly tokensPerSecond: number
  /** Prompt tokens found in the prefix cache, 0 to 1. */
  readonly cacheHitRate: number
  /** Load as the engine defines it, 0 to 1. */
  readonly utilization: number
  /** Absent if the engine is not a prefill or decode worker. */
  readonly pair?: PairLoad
}

/** Transfer of KV blocks by one rank of a prefill or decode engine; -1 for unknown values. */
export interface PairLoad {
  readonly role: 'prefill' | 'decode'
  /** Requests waiting for memory, for the other worker, for the transfer, or retracted. */
  readonly queuedRequests: number
  readonly transferMs: number
  /** Gigabytes per second. */
  readonly transferRate: number
}

export interface EngineReport {
  /** ISO 8601, as sent by the engine; null without one. */
  readonly timestamp: string | null
  /** At least one. */
  readonly ranks: readonly RankLoad[]
}

/** Information of an engine about its model or itself. */
export type EngineInfo =
  | { readonly kind: 'members'; readonly members: Readonly<Record<string, unknown>> }
  /** The engine has no such information. */
  | { readonly kind: 'none' }
  /** Any other response, to be returned unchanged. */
  | { readonly kind: 'response'; readonly response: WorkerResponse }

/** Operation of an engine that an operator can start. */
export type EngineAction =
  | { readonly kind: 'flush_cache' }
  | { readonly kind: 'start_profile'; readonly options: Readonly<Record<string, unknown>> }
  | { readonly kind: 'stop_profile' }

/** Registered with `host.workerControl`; read through `workerControls`. */
export interface WorkerControl extends ModeControl {
  /** Engines that a registration may specify, in addition to `unspecified`. */
  readonly runtimes: readonly RuntimeType[]

  /** True if the registration is for a third-party service, without a call. */
  isExternal(registration: Pick<WorkerRegistration, 'url' | 'runtimeType' | 'provider'>): boolean
  /**
   * Probes a worker's health. Never rejects.
   * @param path of the health route, for modes that have paths
   * @returns null if healthy, else the problem; undefined if the probe failed for lack of local resources
   */
  probe(target: WorkerTarget, path: string, timeoutMs: number): Promise<string | null | undefined>
  /**
   * The models of an engine and their context lengths, as text that changes with them; null if it lists none. Never rejects.
   * Absent if engines of this mode do not list them.
   */
  modelList?(target: WorkerTarget, timeoutMs: number): Promise<string | null>
  /**
   * Waits until the worker is up, and discovers its engine, models and labels.
   * @throws worker_unreachable, model_discovery_failed, rank_discovery_failed
   */
  describe(registration: WorkerRegistration, tools: DescribeTools): Promise<WorkerDescription>

  /**
   * Load of an engine; null if it reports none. Never rejects. Absent if engines of this mode report none. Cached facts
   * belong to the entry, since a changed worker is a new entry.
   */
  loads?(worker: WorkerEntry): Promise<EngineReport | null>
  /** Discards cached facts of a worker that was down and may have another engine now. */
  forget?(worker: WorkerEntry): void
  /** The engine's metrics as Prometheus text; null without. Never rejects. */
  metricsText?(target: WorkerTarget, timeoutMs: number): Promise<string | null>
  /** Information about the model or the engine. @throws UpstreamFailure */
  info?(worker: WorkerEntry, about: 'model' | 'server', timeoutMs: number): Promise<EngineInfo>
  /** Kinds of `perform` that engines of this mode support. */
  readonly actions: readonly EngineAction['kind'][]
  /** Never rejects. @returns null if the engine accepted it, else the problem */
  perform?(target: WorkerTarget, action: EngineAction, timeoutMs: number): Promise<string | null>

  /**
   * A call outside the hot path, with the worker's key; any status resolves. Absent if the mode does not support it.
   * @throws UpstreamFailure
   */
  call?(worker: WorkerTarget, call: WorkerCall): Promise<WorkerResponse>
}

/** The control operations of all connection modes. */
export interface WorkerControls {
  /** Null if no plugin provides the mode. @param mode as in `WorkerEntry.connectionMode` */
  controlOf(mode: string): WorkerControl | null
  /** By the scheme of the URL; null if no plugin provides it. */
  controlFor(url: string): WorkerControl | null
  controls(): readonly WorkerControl[]
  /**
   * A call outside the hot path. Any status resolves; a failed exchange rejects with UpstreamFailure, which a handler need
   * not catch: the client then gets the documented 502 or 504.
   * @throws unsupported_connection_mode (501)
   */
  call(worker: WorkerTarget, call: WorkerCall): Promise<WorkerResponse>
}
