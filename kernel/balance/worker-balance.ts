/** What the rest of the kernel and the plugins see of balancing on one thread. Implemented by `thread-balance.ts`. */
import type { CandidateReport } from '../contracts/hook.ts'
import type { PickLeg } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { WorkerEntry, WorkerStatus } from '../contracts/worker.ts'

/** How a choice came about, for who debugs it. */
export interface Choice {
  /** The policy's own words; null when it has none. */
  readonly explanation: string | null
  /** The chosen tier at the moment of the choice, available or not, in order of registration; the first 64. */
  readonly candidates: readonly CandidateReport[]
}

export type BreakerState = CandidateReport['breaker']

/**
 * What kind of failure speaks against a worker: it answered with a status that counts as one, it kept silent or broke off,
 * or nobody takes connections at its address, which holds for every rank of the engine.
 */
export type Fault = 'answered' | 'silent' | 'unreachable'

/** One worker chosen for one upstream attempt, counted as in flight until released. */
export interface Attempt {
  readonly worker: WorkerEntry
  /** Wire name of the policy that chose, `hook`, `last_worker` (nobody else was left), or `fixed`. */
  readonly policy: string
  /** Null unless asked for, and where no policy chose. */
  readonly choice: Choice | null
  /** Tells the worker's breaker, once; an attempt that is released without a word counts as neither. */
  succeeded(): void
  /** @param fault default `silent` */
  failed(fault?: Fault): void
  /** Takes the attempt out of the in-flight count; further calls do nothing. */
  release(): void
}

export interface PickOptions {
  /** Slots already tried for this request; used again only when nobody else is left. */
  readonly excluded?: readonly number[]
  /** Default `whole`: workers that take whole requests. */
  readonly leg?: PickLeg
  /** The prompt where the gateway has tokenised it, for policies that look at it. */
  readonly tokenIds?: Uint32Array | null
  /** The prompt as bytes, for policies that look at those. Default: the client's body. */
  readonly promptBytes?: Buffer | null
  /** Only these workers. Default: all that serve the model. */
  readonly accepts?: ((worker: WorkerEntry) => boolean) | null
  /** The attempt says how it was chosen; costs an object per candidate. */
  readonly report?: boolean
}

export interface WorkerBalance {
  /**
   * Picks the worker for one attempt and counts it as in flight.
   *
   * @param model canonical model id; `unknown` takes any worker
   * @throws no_workers (503) when none is registered, model_not_found (404) when none serves the model,
   *   no_available_workers (503, with retry-after) when those that do are not ready or their breakers are open,
   *   server_selection_failed (503) naming the kind of worker that a pair lacks,
   *   worker_overload_protection_shed (503, with retry-after) when all that could take it are overloaded, and such
   *   requests are shed
   */
  pick(ctx: RelayContext, model: string, options?: PickOptions): Attempt
  /** True when a policy could choose a worker now that is not among `excluded`. @param model canonical id */
  hasUntried(model: string, options: PickOptions): boolean
  /**
   * True when a request for the model is to be served by a prefill/decode pair: both kinds are registered for it. Where
   * whole workers are too, each request is drawn by their numbers, but never for a side that has nobody available.
   */
  usesPair(model: string): boolean
  /** Counts a worker as in flight without choosing, for work that names its worker. */
  attempt(worker: WorkerEntry): Attempt
  /** Canonical id of a model: itself, or what it is an alias of. */
  canonicalModel(model: string): string

  /** Every worker that serves the model, whole ones and legs of pairs, ready or not. @param model canonical id */
  workersOf(model: string): readonly WorkerEntry[]

  /** True when every worker that may get a request for the model takes this API itself, or nobody may. @param model canonical id */
  takesApi(model: string, api: string): boolean

  /** All registered workers in order of registration. */
  readonly workers: readonly WorkerEntry[]
  byId(id: string): WorkerEntry | undefined
  /** First ready worker in order of registration that passes; for simple proxies. */
  firstReady(accepts?: (worker: WorkerEntry) => boolean): WorkerEntry | undefined
  status(slot: number): WorkerStatus
  /** Requests in flight to one worker, over all threads. */
  inFlight(slot: number): number
  /** Circuit breaker of the worker in the row; `closed` where breakers are off or nobody has the row. */
  breakerState(slot: number): BreakerState
  /** How often the worker in the row has failed, or as a half-open one succeeded, in a row. */
  breakerRuns(slot: number): { readonly failures: number; readonly successes: number }

  /** Control only. Seen by every thread's next pick. */
  setStatus(slot: number, status: WorkerStatus): void
  /** Control only: a free row, whose count is zero. @throws worker_limit (503) when all rows are taken */
  allocateSlot(): number
  /** Control only: gives the row back; it is used again once its count is zero. */
  freeSlot(slot: number): void

  /** Names of all policies. */
  policyNames(): readonly string[]
  /** True when a setting or a label of a worker names the policy, or it is the default. From `start` on. */
  usesPolicy(name: string): boolean
  /** True when a policy in use looks at what engines say about their load. From `start` on. */
  readonly readsLoads: boolean
}
