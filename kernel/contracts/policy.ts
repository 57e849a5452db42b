/** The policy contract: chooses one of the available workers of a tier for a request. */
import type { Logger } from './log.ts'
import type { Metrics } from './metric.ts'
import type { EngineLoad, WorkerEntry } from './worker.ts'

/** The whole request, or one leg of a prefill/decode pair. */
export type PickLeg = 'whole' | 'prefill' | 'decode'

/**
 * The available workers to choose from: ready, breaker not open, one priority tier, in order of registration. The view is
 * reused between picks: read it during `pick` only.
 */
export interface CandidateView {
  readonly length: number
  /** The worker at a position, 0-based. */
  worker(index: number): WorkerEntry
  /** Counter row of the worker at a position: the key for state of a policy. */
  slot(index: number): number
  /** Requests in flight to that worker, over all threads and, in a mesh, all gateways. */
  inFlight(index: number): number
  /** Rows of the candidates: the first `length` entries, for loops; may be the same array at every pick. */
  readonly slots: Int32Array
  /** Live in-flight requests by row. Faster than `inFlight` in loops over `slots`. */
  readonly inFlightBySlot: Int32Array
  /**
   * Recent latency by row, relative to the median of the tier: the load of a worker weighs (256 + value) / 256 times as much.
   * From -128 for half the median to 256 for twice the median; 0 for a worker like the others, or without requests.
   */
  readonly slownessBySlot: Int32Array
  /** True if all workers of the tier have the same cost. */
  readonly hasEqualCosts: boolean
  /** False if no engine has reported its load. */
  readonly hasLoads: boolean
  /** The engine's last load report; null without one or if it is older than three poll periods. */
  load(index: number): EngineLoad | null
  /** Position of a worker among the candidates; -1 if it is not one. */
  indexOfSlot(slot: number): number
  /**
   * All workers of the tier, available or not, in order of registration. The same array until the table changes, so that
   * structures built from it (a hash ring) can be cached.
   */
  readonly members: readonly WorkerEntry[]
}

/** The request, for a policy. */
export interface PickRequest {
  /** Canonical model id; `unknown` for a request without a model. */
  readonly model: string
  readonly leg: PickLeg
  /** Body as received, valid during `pick` only; null unless the policy sets `needsBody`. */
  readonly body: Buffer | null
  /** The tokenized prompt; null if the gateway has not tokenized it. */
  readonly tokenIds: Uint32Array | null
  /** A declared request header, lower-case name; undefined if absent. */
  header(name: string): string | undefined
}

/** A balancing policy: picks the worker of an attempt. One instance per model and thread. */
export interface Policy {
  /** Wire name, such as `round_robin`. */
  readonly name: string
  /** True if `pick` reads the request body. */
  readonly needsBody: boolean
  /** @returns a position in the view, or -1 for none. Called only with length >= 1. Must be synchronous. */
  pick(candidates: CandidateView, request: PickRequest): number
  /** A worker was removed; discard its state. */
  onWorkerRemoved?(slot: number): void
  /** Releases resources: the model's last worker left, or the gateway stops. */
  close?(): void
  /** True if the policy keeps sessions on their workers, so that overlays need not. Default false. */
  readonly isSticky?: boolean
  /** Explains the last pick in a few words, such as `prefix 0.82 on slot 3`; called for debugging only. */
  explain?(): string
}

/** Uniform numbers from 0 up to but not including 1, like Math.random. */
export type RandomSource = () => number

/** What a policy is made from. */
export interface PolicyParts {
  /** Model of the instance; empty for models that no worker lists. */
  readonly model: string
  readonly leg: PickLeg
  readonly random: RandomSource
  readonly metrics: Metrics
  /** For events, not for single requests. */
  readonly log?: Logger
  /** Creates an instance of the default policy, as a fallback. */
  readonly defaultPolicy?: () => Policy
  /**
   * As `Host.shared`.
   *
   * @throws Error if the block exists with another size
   */
  shared(name: string, bytes: number): SharedArrayBuffer
}

/** Creates an instance; each model and leg has its own. */
export type PolicyFactory = (parts: PolicyParts) => Policy

/** Properties of a policy. */
export interface PolicyOptions {
  /** The default policy; at most one policy may be it. Default false. */
  readonly isDefault?: boolean
  /** Legs of a pair that it cannot serve, each with the policy to use instead. */
  readonly instead?: Readonly<Partial<Record<'prefill' | 'decode', string>>>
  /** It reads `CandidateView.load`, so engines are polled for their load while it is in use. Default false. */
  readonly readsLoads?: boolean
  /** Request headers that it reads, lower-case names. */
  readonly headers?: readonly string[]
}

/** Wraps each new instance, for example to keep sessions on their workers; returns the policy to use. */
export type PolicyOverlay = (policy: Policy, parts: PolicyParts) => Policy
