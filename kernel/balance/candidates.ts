/**
 * The candidates of one pick, as a policy sees them. One object per thread, filled anew for each pick without
 * allocating.
 * @hot
 */
import type { CandidateView } from '../contracts/policy.ts'
import type { EngineLoad, EngineLoads, WorkerEntry } from '../contracts/worker.ts'
import type { Breakers } from './breakers.ts'
import { type Availability, openAvailability, type Tier } from './compiled-table.ts'
import type { Counters } from './counters.ts'

const NOBODY: Tier = Object.freeze({
  priority: 0,
  workers: [],
  slots: new Int32Array(0),
  hasEqualCosts: true,
  found: openAvailability(0),
})
const NO_SLOTS: readonly number[] = Object.freeze([])

/** So few are searched: an index for each of many small models would cost memory for nothing. */
const MAX_SEARCHED = 16

/** How often an engine is asked whose report does not say, milliseconds. */
const LOAD_PERIOD_MS = 10_000
/** A report that is older than this many periods says nothing any more. */
const LOAD_PERIODS = 3

type Accepts = (worker: WorkerEntry) => boolean

export interface CandidateParts {
  readonly counters: Counters
  readonly breakers: Breakers
  readonly loads: { readonly current: EngineLoads }
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

export class Candidates implements CandidateView {
  length = 0
  readonly #parts: CandidateParts
  readonly #counters: Counters
  #tier: Tier = NOBODY
  /** The candidates: what was found of the tier, or `untried` where some have been tried. */
  #found: Availability = NOBODY.found
  #untried = openAvailability(0)
  #accepts: Accepts | null = null
  /** Leaves overloaded workers out. */
  #avoidsOverload = false
  /** Read once a pick, when somebody asks for a load. */
  #nowMs = -1

  constructor(parts: CandidateParts) {
    this.#parts = parts
    this.#counters = parts.counters
  }

  /** Makes room for tiers of up to this many workers; called when the table changes, not when picking. */
  reserve(size: number): void {
    if (size > this.#untried.positions.length) this.#untried = openAvailability(size)
    this.#found = NOBODY.found
    this.#tier = NOBODY
    this.length = 0
  }

  /**
   * Takes the available workers of the first tier that has any. Overloaded ones count only when every tier has nobody
   * else, and not at all where requests are shed; slots already tried come after that: a second try on the same worker
   * beats none.
   *
   * @param accepts null takes every worker
   * @returns false when no worker of any tier is available
   */
  fill(tiers: readonly Tier[], tried: readonly number[], accepts: Accepts | null = null): boolean {
    const { overload } = this.#parts.loads.current
    this.#nowMs = -1
    this.#accepts = accepts
    this.#avoidsOverload = overload !== undefined
    if (this.#takeFirst(tiers, tried)) return true
    if (overload === 'avoid') {
      this.#avoidsOverload = false
      if (this.#takeFirst(tiers, tried)) return true
    }
    return tried.length > 0 && this.#takeFirst(tiers, NO_SLOTS)
  }

  /** True when `fill` would find a worker that is not among the tried ones. */
  hasUntried(tiers: readonly Tier[], tried: readonly number[], accepts: Accepts | null = null): boolean {
    return this.fill(tiers, tried, accepts) && !tried.includes(this.slot(0))
  }

  /** Milliseconds until this worker tells its load anew, where requests to it are shed; null where it may be picked. */
  shedMs(slot: number): number | null {
    if (this.#parts.loads.current.overload !== 'shed') return null
    const load = this.#freshLoad(slot)
    if (load?.isOverloaded !== true) return null
    return Math.max(0, load.atMs + (load.periodMs ?? LOAD_PERIOD_MS) - this.#nowMs)
  }

  /** One of them was refused, so what was found does not hold: the next `fill` looks again. */
  forget(): void {
    this.#tier.found.isSettled = false
  }

  worker(index: number): WorkerEntry {
    return this.#tier.workers[this.#found.positions[index]]
  }

  slot(index: number): number {
    return this.#found.slots[index]
  }

  inFlight(index: number): number {
    return this.#counters.inFlight(this.#found.slots[index])
  }

  get slots(): Int32Array {
    return this.#found.slots
  }

  get inFlightBySlot(): Int32Array {
    return this.#counters.inFlightBySlot
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
    // What was found before does not stand the test; a slot that no worker can have is undefined.
    const index = (found.indexes as Int32Array)[slot]
    return index < found.length && found.slots[index] === slot ? index : -1
  }

  get members(): readonly WorkerEntry[] {
    return this.#tier.workers
  }

  /** Kept with what was found: most picks find nothing new. */
  #index(found: Availability): void {
    found.indexes ??= new Int32Array(this.#counters.maxWorkers)
    for (let i = 0; i < found.length; i++) found.indexes[found.slots[i]] = i
    found.isIndexed = true
  }

  #takeFirst(tiers: readonly Tier[], tried: readonly number[]): boolean {
    for (let i = 0; i < tiers.length; i++) if (this.#take(tiers[i], tried)) return true
    return false
  }

  #take(tier: Tier, tried: readonly number[]): boolean {
    const available = this.#parts.breakers.findAvailable(tier)
    const takesAll = tried.length === 0 && this.#accepts === null && !this.#avoidsOverload
    this.#tier = tier
    this.#found = takesAll ? available : this.#onlyWanted(available, tried)
    this.length = this.#found.length
    return this.length > 0
  }

  #onlyWanted(available: Availability, tried: readonly number[]): Availability {
    const untried = this.#untried
    const accepts = this.#accepts
    const tier = this.#tier
    let kept = 0
    for (let i = 0; i < available.length; i++) {
      const slot = available.slots[i]
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
