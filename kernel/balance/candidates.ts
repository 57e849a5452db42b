/**
 * The candidates of one pick, as a policy sees them. One object per thread, filled anew for each pick without
 * allocating.
 * @hot
 */
import type { CandidateView } from '../contracts/policy.ts'
import type { EngineLoad, EngineLoads, WorkerEntry } from '../contracts/worker.ts'
import type { Breakers } from './breakers.ts'
import type { Tier } from './compiled-table.ts'
import type { Counters } from './counters.ts'

const NOBODY: Tier = Object.freeze({ priority: 0, workers: [], slots: new Int32Array(0) })
const NO_SLOTS: readonly number[] = Object.freeze([])

/** How often an engine is asked whose report does not say, milliseconds. @source routing facts 1.9 */
const LOAD_PERIOD_MS = 10_000
/** A report that is older than this many periods says nothing any more. @source routing facts 1.2 (OURS) */
const LOAD_PERIODS = 3

export interface CandidateParts {
  readonly counters: Counters
  readonly breakers: Breakers
  readonly loads: { readonly current: EngineLoads }
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

export class Candidates implements CandidateView {
  length = 0
  private readonly parts: CandidateParts
  private readonly counters: Counters
  private tier: Tier = NOBODY
  /** Positions in the tier of the candidates, ascending. */
  private positions = new Int32Array(0)
  /** Slot → index, right for the slots of this pick's candidates only; written when somebody asks. */
  private readonly indexes: Int32Array
  private isIndexed = false
  /** Read once a pick, when somebody asks for a load. */
  private nowMs = -1

  constructor(parts: CandidateParts) {
    this.parts = parts
    this.counters = parts.counters
    this.indexes = new Int32Array(parts.counters.maxWorkers)
  }

  /** Makes room for tiers of up to this many workers; called when the table changes, not when picking. */
  reserve(size: number): void {
    if (size > this.positions.length) this.positions = new Int32Array(size)
    this.tier = NOBODY
    this.length = 0
  }

  /**
   * Takes the available workers of the first tier that has any. Slots already tried count only when every tier has
   * nobody else: a second try on the same worker beats none.
   *
   * @returns false when no worker of any tier is available
   */
  fill(tiers: readonly Tier[], tried: readonly number[]): boolean {
    this.nowMs = -1
    for (let i = 0; i < tiers.length; i++) if (this.take(tiers[i], tried)) return true
    if (tried.length === 0) return false
    for (let i = 0; i < tiers.length; i++) if (this.take(tiers[i], NO_SLOTS)) return true
    return false
  }

  worker(index: number): WorkerEntry {
    return this.tier.workers[this.positions[index]]
  }

  slot(index: number): number {
    return this.tier.slots[this.positions[index]]
  }

  inFlight(index: number): number {
    return this.counters.inFlight(this.tier.slots[this.positions[index]])
  }

  load(index: number): EngineLoad | null {
    const load = this.parts.loads.current.bySlot[this.tier.slots[this.positions[index]]]
    if (load === undefined || load === null) return null
    if (this.nowMs < 0) this.nowMs = this.parts.now()
    const { atMs, periodMs = LOAD_PERIOD_MS } = load
    return this.nowMs - atMs > LOAD_PERIODS * periodMs ? null : load
  }

  indexOfSlot(slot: number): number {
    if (!this.isIndexed) this.index()
    // What an earlier pick has left behind does not stand the test; a slot that no worker can have is undefined.
    const index = this.indexes[slot]
    return index < this.length && this.slot(index) === slot ? index : -1
  }

  get members(): readonly WorkerEntry[] {
    return this.tier.workers
  }

  private index(): void {
    const { indexes, positions, length } = this
    const { slots } = this.tier
    for (let i = 0; i < length; i++) indexes[slots[positions[i]]] = i
    this.isIndexed = true
  }

  private take(tier: Tier, tried: readonly number[]): boolean {
    const available = this.parts.breakers.collectAvailable(tier.slots, tier.workers, this.positions)
    this.tier = tier
    this.isIndexed = false
    this.length = tried.length === 0 ? available : this.dropTried(tier.slots, available, tried)
    return this.length > 0
  }

  private dropTried(slots: Int32Array, available: number, tried: readonly number[]): number {
    const positions = this.positions
    let kept = 0
    for (let i = 0; i < available; i++) {
      if (!tried.includes(slots[positions[i]])) positions[kept++] = positions[i]
    }
    return kept
  }
}
