/** Load balancing of one thread, as the kernel and plugins use it. Implemented by `thread-balance.ts`. */
import type { CandidateReport } from '../contracts/hook.ts'
import type { PickLeg } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { WorkerEntry, WorkerStatus } from '../contracts/worker.ts'

/** Explanation of a choice, for debugging. */
export interface Choice {
  /** Explanation of the policy; null without one. */
  readonly explanation: string | null
  /** The first 64 workers of the chosen tier at the time of the choice, in order of registration. */
  readonly candidates: readonly CandidateReport[]
}

export type BreakerState = CandidateReport['breaker']

/**
 * Kind of a failure: `answered` is a response with a status that counts as one, `silent` no or an incomplete response, and
 * `unreachable` an address that accepts no connection, which applies to every rank of the engine.
 */
export type Fault = 'answered' | 'silent' | 'unreachable'

/** Attempts at one worker since its registration, over all threads. */
export interface WorkerFigures {
  /** With an outcome; those that a client cancelled are not counted. */
  readonly attempts: number
  readonly failures: Readonly<Record<Fault, number>>
  /** Moving averages of successful attempts, milliseconds; null before the first. */
  readonly durationMs: number | null
  readonly firstByteMs: number | null
  /** Share of the recent attempts that failed, 0 to 1; a moving average. */
  readonly failureShare: number
  /** True if a stream waits for a byte and no stream of the worker receives any. */
  readonly isStalled: boolean
  /** The last failed attempt; null without one. */
  readonly lastError: { readonly text: string; readonly atMs: number } | null
}

/** Takes what a thread sees of the streams of a worker, about once per second. */
export interface StallReports {
  /** Time without a byte after which a stream has stalled, milliseconds; 0 for never. */
  readonly stallMs: number
  progressed(slot: number): void
  stalled(slot: number): void
}

/** One worker chosen for one upstream attempt, counted as in flight until released. */
export interface Attempt {
  readonly worker: WorkerEntry
  /** Name of the policy, `hook`, `last_worker` (no other worker was left), or `fixed`. */
  readonly policy: string
  /** Null unless requested, and if no policy chose. */
  readonly choice: Choice | null
  /** The first byte of the response body has arrived; further calls have no effect. */
  firstByte(): void
  /** Reports to the worker's breaker, once; an attempt released without a report counts as neither. */
  succeeded(): void
  /** As `succeeded`, for a response that rejects the request. */
  refused(): void
  /** @param fault default `silent` */
  failed(fault?: Fault): void
  /** Ends the in-flight count of the attempt; further calls have no effect. */
  release(): void
}

export interface PickOptions {
  /** Slots already tried for this request; used again only if no other is left. */
  readonly excluded?: readonly number[]
  /** Default `whole`: workers that serve whole requests. */
  readonly leg?: PickLeg
  /** The tokenized prompt, for policies that compare prefixes. */
  readonly tokenIds?: Uint32Array | null
  /** The prompt as bytes, for policies that compare prefixes. Default: the client's body. */
  readonly promptBytes?: Buffer | null
  /** Filters the workers of the model. Default: all. */
  readonly accepts?: ((worker: WorkerEntry) => boolean) | null
  /** Sets `Attempt.choice`; costs an object per candidate. */
  readonly report?: boolean
}

export interface WorkerBalance {
  /**
   * Picks the worker for one attempt and counts it as in flight.
   *
   * @param model canonical model id; `unknown` takes any worker
   * @throws no_workers (503) if none is registered, model_not_found (404) if none serves the model,
   *   workers_pending (503, with retry-after) if one that is being registered may serve it,
   *   no_available_workers (503, with retry-after) if those that do are not ready or their breakers are open,
   *   server_selection_failed (503) with the kind of worker that a pair lacks,
   *   worker_overload_protection_shed (503, with retry-after) if all that could serve it are overloaded and requests are
   *   shed
   */
  pick(ctx: RelayContext, model: string, options?: PickOptions): Attempt
  /** True if a policy could choose a worker now that is not in `excluded`. @param model canonical id */
  hasUntried(model: string, options: PickOptions): boolean
  /**
   * True if a request for the model goes to a prefill/decode pair. If whole workers serve the model too, each request is
   * drawn in proportion to the workers, but never for a side without an available worker.
   */
  usesPair(model: string): boolean
  /** Counts a request in flight to a fixed worker, without a pick. */
  attempt(worker: WorkerEntry): Attempt
  /** Canonical id of a model: itself, or what it is an alias of. */
  canonicalModel(model: string): string

  /**
   * Every worker that serves the model: whole ones and legs of pairs, ready or not.
   *
   * @param model id, alias or virtual model, for the workers of all its targets
   */
  workersOf(model: string): readonly WorkerEntry[]

  /** True if every worker that may get a request for the model accepts this API format, or no worker may get one. @param model id, alias or virtual model */
  takesApi(model: string, api: string): boolean

  /** All registered workers in order of registration. */
  readonly workers: readonly WorkerEntry[]
  byId(id: string): WorkerEntry | undefined
  /** First ready worker in order of registration that passes the filter. */
  firstReady(accepts?: (worker: WorkerEntry) => boolean): WorkerEntry | undefined
  status(slot: number): WorkerStatus
  /** Requests of this gateway in flight to one worker, over all threads. */
  inFlight(slot: number): number
  /** Requests in flight to one worker from other gateways, as last reported; 0 without a mesh. */
  inFlightElsewhere(slot: number): number
  /** Control only. Applies to the next pick of every thread. */
  setInFlightElsewhere(slot: number, count: number): void
  /** Circuit breaker of the worker in the row; `closed` if breakers are disabled or the row is free. */
  breakerState(slot: number): BreakerState
  /** Consecutive failures of the worker in the row, and consecutive successes while half-open. */
  breakerRuns(slot: number): { readonly failures: number; readonly successes: number }
  figures(slot: number): WorkerFigures
  /** Requests that the worker in the row has rejected since it last served one, over all threads. */
  refusals(slot: number): number
  /** An answer of the worker in the row named a model that the worker does not list. Control looks at its engine. */
  misnamed(slot: number): void
  /** Calls of `misnamed` for the worker in the row, over all threads. */
  misnamedAnswers(slot: number): number
  /** Keeps the text of a failed attempt; ignored if the worker was removed meanwhile. */
  noteError(worker: WorkerEntry, text: string): void
  readonly stalls: StallReports

  /** Control only. Applies to the next pick of every thread. */
  setStatus(slot: number, status: WorkerStatus): void
  /** Control only: the worker answers probes again, so its open breaker becomes half-open at once. */
  recovered(worker: WorkerEntry): void
  /** Control only: allocates a free row. @throws worker_limit (503) if all rows are taken */
  allocateSlot(): number
  /** Control only: frees the row; it is reused when its count is zero. */
  freeSlot(slot: number): void

  /** Name of the policy that chooses among the whole workers of a model. @param model canonical id */
  policyOf(model: string): string
  /** True if a setting or a worker label selects the policy, or it is the default. From `start` on. */
  usesPolicy(name: string): boolean
  /** True if a policy in use reads the load reports of engines. From `start` on. */
  readonly readsLoads: boolean
}
