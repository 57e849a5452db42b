/**
 * The candidates of one pick, for its policy. One object per thread, refilled for each pick without allocation.
 * @hot
 */
import type { CandidateView } from '../contracts/policy.ts'
import type { EngineLoad, EngineLoads, WorkerEntry } from '../contracts/worker.ts'
import type { Breakers } from './breakers.ts'
import { type Availability, openAvailability, type Tier } from './compiled-table.ts'
import type { Counters } from './counters.ts'
import type { LatencyWeights } from './latency-weights.ts'
import type { Outliers } from './outliers.ts'

const EMPTY_TIER: Tier = Object.freeze({
  priority: 0,
  workers: [],
  slots: new Int32Array(0),
  hasEqualCosts: true,
  found: openAvailability(0),
})
const NO_SLOTS: readonly number[] = Object.freeze([])

/** Up to this many are searched linearly; more get an index. */
const MAX_SEARCHED = 16

/** Default poll period of engine loads, milliseconds. */
const LOAD_PERIOD_MS = 10_000
/** Reports older than this many periods are ignored. */
const LOAD_PERIODS = 3

type Accepts = (worker: WorkerEntry) => boolean

export interface CandidateParts {
  readonly counters: Counters
  readonly breakers: Breakers
  readonly outliers: Outliers
  readonly latency: LatencyWeights
  readonly loads: { readonly current: EngineLoads }
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

export class Candidates implements CandidateView {
  length = 0
  readonly #parts: CandidateParts
  readonly #counters: Counters
  #tier: Tier = EMPTY_TIER
  /** The candidates: the available workers of the tier, or `untried` if they are filtered. */
  #found: Availability = EMPTY_TIER.found
  #untried = openAvailability(0)
  #accepts: Accepts | null = null
  #avoidsOverload = false
  #avoidsOutliers = false
  /** The current fill has left out an outlier. */
  #leavesOut = false
  /** Time of the pick, read on the first use; -1 before. */
  #nowMs = -1

  constructor(parts: CandidateParts) {
    this.#parts = parts
    this.#counters = parts.counters
  }

  /** Allocates for tiers of up to this many workers; called when the table changes, not on a pick. */
  reserve(size: number): void {
    if (size > this.#untried.positions.length) this.#untried = openAvailability(size)
    this.#found = EMPTY_TIER.found
    this.#tier = EMPTY_TIER
    this.length = 0
  }

  /**
   * Takes the available workers of the first tier that has any. Outliers are used only if no tier has others. Overloaded
   * workers are used only if no tier has others that are not outliers, and never if requests are shed. Slots already tried
   * are used if nothing else is left.
   *
   * @param accepts filter; null accepts every worker
   * @returns false if no worker of any tier is available
   */
  fill(tiers: readonly Tier[], tried: readonly number[], accepts: Accepts | null = null): boolean {
    this.#nowMs = -1
    this.#accepts = accepts
    this.#avoidsOutliers = true
    this.#leavesOut = false
    if (this.#useSparing(tiers, tried)) return true
    if (this.#leavesOut) {
      this.#avoidsOutliers = false
      if (this.#useSparing(tiers, tried)) return true
    }
    return tried.length > 0 && this.#useFirst(tiers, NO_SLOTS)
  }

  /** Overloaded workers only if there are no others. */
  #useSparing(tiers: readonly Tier[], tried: readonly number[]): boolean {
    const { overload } = this.#parts.loads.current
    this.#avoidsOverload = overload !== undefined
    if (this.#useFirst(tiers, tried)) return true
    if (overload !== 'avoid') return false
    this.#avoidsOverload = false
    return this.#useFirst(tiers, tried)
  }

  /** True if `fill` finds a worker that was not tried. */
  hasUntried(tiers: readonly Tier[], tried: readonly number[], accepts: Accepts | null = null): boolean {
    return this.fill(tiers, tried, accepts) && !tried.includes(this.slot(0))
  }

  /** Milliseconds until the next load report of a worker whose requests are shed; null if it may be picked. */
  shedMs(slot: number): number | null {
    if (this.#parts.loads.current.overload !== 'shed') return null
    const load = this.#freshLoad(slot)
    if (load?.isOverloaded !== true) return null
    return Math.max(0, load.atMs + (load.periodMs ?? LOAD_PERIOD_MS) - this.#nowMs)
  }

  /** Discards the cached availability after a breaker refused a candidate. */
  invalidate(): void {
    this.#tier.found.isSettled = false
  }

  worker(index: number): WorkerEntry {
    return this.#tier.workers[this.#found.positions[index]]
  }

  slot(index: number): number {
    return this.#found.slots[index]
  }

  inFlight(index: number): number {
    return this.#counters.load(this.#found.slots[index])
  }

  get slots(): Int32Array {
    return this.#found.slots
  }

  get inFlightBySlot(): Int32Array {
    return this.#counters.loadBySlot
  }

  get slownessBySlot(): Int32Array {
    return this.#parts.latency.slownessBySlot
  }

  get hasEqualCosts(): boolean {
    return this.#tier.hasEqualCosts
  }

  get hasLoads(): boolean {
    return this.#parts.loads.current.bySlot.length > 0
  }

  load(index: number): EngineLoad | null {
    return this.#freshLoad(this.#found.slots[index])
  }

  #freshLoad(slot: number): EngineLoad | null {
    const load = this.#parts.loads.current.bySlot[slot]
    if (load === undefined || load === null) return null
    if (this.#nowMs < 0) this.#nowMs = this.#parts.now()
    const { atMs, periodMs = LOAD_PERIOD_MS } = load
    return this.#nowMs - atMs > LOAD_PERIODS * periodMs ? null : load
  }

  indexOfSlot(slot: number): number {
    const found = this.#found
    if (found.length <= MAX_SEARCHED) return searchSlot(found, slot)
    if (!found.isIndexed) this.#index(found)
    // Entries of earlier indexes fail the comparison; a slot out of range is undefined.
    const index = (found.indexes as Int32Array)[slot]
    return index < found.length && found.slots[index] === slot ? index : -1
  }

  get members(): readonly WorkerEntry[] {
    return this.#tier.workers
  }

  /** Cached with the availability. */
  #index(found: Availability): void {
    found.indexes ??= new Int32Array(this.#counters.maxWorkers)
    for (let i = 0; i < found.length; i++) found.indexes[found.slots[i]] = i
    found.isIndexed = true
  }

  #useFirst(tiers: readonly Tier[], tried: readonly number[]): boolean {
    for (let i = 0; i < tiers.length; i++) if (this.#use(tiers[i], tried)) return true
    return false
  }

  #use(tier: Tier, tried: readonly number[]): boolean {
    const available = this.#parts.breakers.findAvailable(tier)
    const hasOutliers =
      available.hasSuspects && this.#avoidsOutliers && this.#parts.outliers.select(available)
    const takesAll = tried.length === 0 && this.#accepts === null && !this.#avoidsOverload && !hasOutliers
    this.#tier = tier
    this.#found = takesAll ? available : this.#filter(available, tried, hasOutliers)
    this.length = this.#found.length
    return this.length > 0
  }

  #filter(available: Availability, tried: readonly number[], hasOutliers: boolean): Availability {
    const untried = this.#untried
    const accepts = this.#accepts
    const tier = this.#tier
    let kept = 0
    for (let i = 0; i < available.length; i++) {
      const slot = available.slots[i]
      if (hasOutliers && this.#parts.outliers.leavesOut(slot)) {
        this.#leavesOut = true
        continue
      }
      if (tried.includes(slot)) continue
      if (this.#avoidsOverload && this.#freshLoad(slot)?.isOverloaded === true) continue
      if (accepts !== null && !accepts(tier.workers[available.positions[i]])) continue
      untried.positions[kept] = available.positions[i]
      untried.slots[kept++] = slot
    }
    untried.length = kept
    untried.isIndexed = false
    return untried
  }
}

function searchSlot(found: Availability, slot: number): number {
  for (let i = 0; i < found.length; i++) if (found.slots[i] === slot) return i
  return -1
}
