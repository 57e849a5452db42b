/**
 * The candidates of one pick, as a policy sees them. One object per thread, filled anew for each pick without
 * allocating.
 * @hot
 */
import type { CandidateView } from '../contracts/policy.ts'
import type { EngineLoad, WorkerEntry } from '../contracts/worker.ts'
import type { Tier } from './compiled-table.ts'
import type { Counters } from './counters.ts'

const NOBODY: Tier = Object.freeze({ priority: 0, workers: [], slots: new Int32Array(0) })
const NO_SLOTS: readonly number[] = Object.freeze([])

export class Candidates implements CandidateView {
  length = 0
  private readonly counters: Counters
  private tier: Tier = NOBODY
  /** Positions in the tier of the candidates. */
  private positions = new Int32Array(0)

  constructor(counters: Counters) {
    this.counters = counters
  }

  /** Makes room for tiers of up to this many workers; called when the table changes, not when picking. */
  reserve(size: number): void {
    if (size > this.positions.length) this.positions = new Int32Array(size)
    this.tier = NOBODY
    this.length = 0
  }

  /**
   * Takes the ready workers of the first tier that has any. Slots already tried count only when every tier has
   * nobody else: a second try on the same worker beats none.
   *
   * @returns false when no worker of any tier is ready
   */
  fill(tiers: readonly Tier[], tried: readonly number[]): boolean {
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

  load(): EngineLoad | null {
    return null
  }

  indexOfSlot(slot: number): number {
    for (let i = 0; i < this.length; i++) if (this.slot(i) === slot) return i
    return -1
  }

  get members(): readonly WorkerEntry[] {
    return this.tier.workers
  }

  inFlight(index: number): number {
    return this.counters.inFlight(this.tier.slots[this.positions[index]])
  }

  private take(tier: Tier, tried: readonly number[]): boolean {
    const ready = this.counters.collectReady(tier.slots, this.positions)
    this.tier = tier
    this.length = tried.length === 0 ? ready : this.dropTried(tier.slots, ready, tried)
    return this.length > 0
  }

  private dropTried(slots: Int32Array, ready: number, tried: readonly number[]): number {
    const positions = this.positions
    let kept = 0
    for (let i = 0; i < ready; i++) {
      if (!tried.includes(slots[positions[i]])) positions[kept++] = positions[i]
    }
    return kept
  }
}
