/** The policy contract: given the available workers of one tier, which one takes this request. */
import type { Logger } from './log.ts'
import type { Metrics } from './metric.ts'
import type { EngineLoad, WorkerEntry } from './worker.ts'

/** Which half of the work a pick is for: all of it, or one leg of a prefill/decode pair. */
export type PickLeg = 'whole' | 'prefill' | 'decode'

/**
 * The available workers that a policy may choose from: all ready, breaker not open, all of one priority tier, in
 * order of registration. The view is reused between picks: read it during `pick`, keep nothing.
 */
export interface CandidateView {
  readonly length: number
  /** The worker at a position, 0-based. */
  worker(index: number): WorkerEntry
  /** Row of the worker at a position in the shared counters: the key under which a policy keeps what it knows. */
  slot(index: number): number
  /** Requests in flight to that worker, over all threads. */
  inFlight(index: number): number
  /** Rows of the candidates: the first `length` entries. For loops over many; may be the same array at every pick. */
  readonly slots: Int32Array
  /** Requests in flight by row, live. With `slots`, what `inFlight` tells, at a fraction of the price. */
  readonly inFlightBySlot: Int32Array
  /** True when all workers of the tier have the same cost, so that nobody need ask. */
  readonly hasEqualCosts: boolean
  /** False when no engine has reported anything. */
  readonly hasLoads: boolean
  /** The engine's last report; null when there is none or it is older than three poll periods. */
  load(index: number): EngineLoad | null
  /** Position of a worker among the candidates; -1 when it is not one of them. */
  indexOfSlot(slot: number): number
  /**
   * All workers of the tier, available or not, in order of registration. The same array until the table changes:
   * what is built from it (a hash ring) may be kept as long as it is the same.
   */
  readonly members: readonly WorkerEntry[]
}

/** What a policy may know about the request. */
export interface PickRequest {
  /** Canonical model id; `unknown` when the request named none. */
  readonly model: string
  readonly leg: PickLeg
  /** Body as received, valid during `pick` only; null unless the policy sets `needsBody`. */
  readonly body: Buffer | null
  /** Prompt as token ids where the gateway has tokenised it; null otherwise. */
  readonly tokenIds: Uint32Array | null
  /** A declared request header, lower-case name; undefined when absent. */
  header(name: string): string | undefined
}

export interface Policy {
  /** Wire name, such as `round_robin`. */
  readonly name: string
  /** True when `pick` reads the request body. */
  readonly needsBody: boolean
  /** @returns a position in the view, or -1 for none. Called only with length >= 1. Must be synchronous. */
  pick(candidates: CandidateView, request: PickRequest): number
  /** A worker left; drop what is kept about it. */
  onWorkerRemoved?(slot: number): void
  /** Releases timers and the like: the model's last worker left, or the gateway ends. */
  close?(): void
  /** True when it keeps sessions with their workers by itself, so that no overlay need do so. Default false. */
  readonly isSticky?: boolean
  /** Why the last pick went as it did, in a few words, such as `prefix 0.82 on slot 3`; asked only while debugging. */
  explain?(): string
}

/** Uniform numbers from 0 up to but not including 1, like Math.random. */
export type RandomSource = () => number

/** What an instance of a policy may use. */
export interface PolicyParts {
  /** Model that the instance belongs to; empty for the one that serves unknown models. */
  readonly model: string
  readonly leg: PickLeg
  readonly random: RandomSource
  readonly metrics: Metrics
  /** For what an operator should know; not for requests. */
  readonly log?: Logger
  /** An instance of the policy that is the default, for what this one leaves open. Left out in tests. */
  readonly defaultPolicy?: () => Policy
  /**
   * Memory that all threads share, by a name of the plugin's own: zeroed on first use, and the same block for whoever asks
   * for the name later, on any thread at any time. A data thread that is the first to ask waits for control meanwhile.
   *
   * @throws Error when the block has another size
   */
  shared(name: string, bytes: number): SharedArrayBuffer
}

/** Makes one instance; each model and leg has its own, so that counters are not shared between models. */
export type PolicyFactory = (parts: PolicyParts) => Policy

/** What a policy is and needs, known without making an instance. */
export interface PolicyOptions {
  /** The one that models have when the configuration names none; at most one may say so. Default false. */
  readonly isDefault?: boolean
  /** Legs of a pair that it cannot serve, each with the policy that does so where this one is the setting. */
  readonly instead?: Readonly<Partial<Record<'prefill' | 'decode', string>>>
  /** It reads `CandidateView.load`, so engines are asked for their load while it is in use. Default false. */
  readonly readsLoads?: boolean
  /** Request headers that it reads, lower-case names: every route keeps them. */
  readonly headers?: readonly string[]
}

/** Wraps each new instance, such as to let sessions go before the policy; gives back what is to be asked instead. */
export type PolicyOverlay = (policy: Policy, parts: PolicyParts) => Policy
