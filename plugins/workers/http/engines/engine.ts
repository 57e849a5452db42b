/** What the gateway knows about one kind of engine that it reaches over HTTP. */
import type { EngineQuirks, RuntimeType } from '#kernel'
import type { Info, WorkerQueries } from '../worker-queries.ts'

/** Where an engine reports its load: `GET /v1/loads`, the gauges of `GET /metrics`, or the slots of `GET /slots`. */
export type LoadSource = 'loads' | 'metrics' | 'slots'

/** Gauge names; the first one on the page is used. */
export interface Gauges {
  readonly running: readonly string[]
  readonly waiting: readonly string[]
  readonly usage: readonly string[]
  readonly hitRate: readonly string[]
  readonly throughput: readonly string[]
}

/** An error whose status says something else than its text. */
export interface ErrorWords {
  readonly status: number
  /** Part of the message, in lower case. */
  readonly words: string
  /** A mistake of the client; no room until other requests end; an engine that cannot serve any request. */
  readonly means: 'bad_request' | 'full' | 'failed'
}

export interface Engine {
  readonly name: RuntimeType
  /** Versions that were run behind the gateway; for the reference page, as the next. */
  readonly tried?: string
  /** What differs from other engines, what the gateway does about it, and what an operator should set. */
  readonly notes?: readonly string[]
  /** Values of `owned_by` in its model list, in lower case. */
  readonly owners: readonly string[]
  /** Recognizes an engine whose model list has another owner by a route that only this engine has. */
  recognizes?(queries: WorkerQueries): Promise<boolean>
  /** Responses whose members become labels, in order of precedence. */
  info?(queries: WorkerQueries): Promise<readonly (Info | null)[]>
  /** The number of data-parallel ranks. @throws rank_discovery_failed */
  rankCount?(queries: WorkerQueries, url: string): Promise<number>
  /** Native APIs of the engine that are not used, because chat serves clients better. */
  readonly avoidedApis?: readonly string[]
  /** In order of preference. */
  readonly loadSources: readonly LoadSource[]
  readonly gauges?: Gauges
  readonly errorWords?: readonly ErrorWords[]
  readonly quirks?: EngineQuirks
}
