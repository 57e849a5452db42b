/** Removes the least recently used prefixes of workers that exceed their limit in the prefix table. */

import { claimsRound, type Slice } from '../sliced-sweep.ts'
import type { WorkerCounters } from '../worker-counters.ts'
import { HOLDERS, type PrefixTable, SWEEP_ROUND } from './prefix-table.ts'

/** Ages are grouped into classes, 32 per doubling, so that the age limit is accurate to about 3 %. */
const CLASSES_PER_DOUBLING = 32
const CLASSES = 33 * CLASSES_PER_DOUBLING
const ENTRIES_PER_STEP = 1_024

export interface PrefixSweepOptions {
  readonly table: PrefixTable
  readonly counters: WorkerCounters
  readonly maxWorkers: number
  /** Maximum bytes per worker. */
  readonly maxPerWorker: number
  readonly intervalMs: number
}

/** Starts a sweep; null if no worker exceeds its limit or another thread sweeps. */
export function beginPrefixSweep(options: PrefixSweepOptions): Slice | null {
  const { table, counters, maxWorkers, maxPerWorker, intervalMs } = options
  if (!claimsRound(table.cells, SWEEP_ROUND, intervalMs)) return null
  const over = new Map<number, Float64Array>()
  for (let slot = 0; slot < maxWorkers; slot++) {
    if (counters.cachedBytes(slot) > maxPerWorker) over.set(slot, new Float64Array(CLASSES))
  }
  return over.size === 0 ? null : new PrefixSweep(options, over).slice
}

/** One sweep: counts the bytes of each worker by age, computes an age limit per worker, removes older entries. */
class PrefixSweep {
  readonly slice: Slice = () => this.step()
  private readonly table: PrefixTable
  private readonly counters: WorkerCounters
  private readonly maxPerWorker: number
  private readonly clock: number
  /** Slot of each worker above its limit → its bytes by age class. */
  private readonly over: Map<number, Float64Array>
  /** Slot → bytes of every worker; corrects drift of the running counts. */
  private readonly totals: Float64Array
  /** Slot → first age class to remove; null while counting. */
  private cuts: Map<number, number> | null = null
  private next = 0

  constructor(options: PrefixSweepOptions, over: Map<number, Float64Array>) {
    this.table = options.table
    this.counters = options.counters
    this.maxPerWorker = options.maxPerWorker
    this.clock = options.table.clock
    this.over = over
    this.totals = new Float64Array(options.maxWorkers)
  }

  private step(): boolean {
    const end = Math.min(this.table.entryCount, this.next + ENTRIES_PER_STEP)
    for (let entry = this.next; entry < end; entry++) {
      if (!this.table.isUsed(entry)) continue
      if (this.cuts === null) this.count(entry)
      else this.drop(entry, this.cuts)
    }
    this.next = end
    if (end < this.table.entryCount) return true
    if (this.cuts !== null) return false
    this.cuts = this.decide()
    this.next = 0
    return true
  }

  private count(entry: number): void {
    const span = this.table.span(entry)
    for (let place = 0; place < HOLDERS; place++) {
      const name = this.table.holderAt(entry, place)
      if (name === 0) continue
      if (!this.counters.isCurrent(name)) {
        this.table.dropHolder(entry, place, name)
        continue
      }
      const slot = name >>> 16
      this.totals[slot] += span
      const byAge = this.over.get(slot)
      if (byAge !== undefined) byAge[this.classOf(entry)] += span
    }
  }

  private decide(): Map<number, number> {
    const cuts = new Map<number, number>()
    for (let slot = 0; slot < this.totals.length; slot++) {
      if (this.totals[slot] !== this.counters.cachedBytes(slot))
        this.counters.setCached(slot, this.totals[slot])
    }
    for (const [slot, byAge] of this.over) {
      let kept = 0
      let cut = 0
      while (cut < CLASSES && kept + byAge[cut] <= this.maxPerWorker) kept += byAge[cut++]
      if (cut < CLASSES) cuts.set(slot, cut)
    }
    return cuts
  }

  private drop(entry: number, cuts: ReadonlyMap<number, number>): void {
    for (let place = 0; place < HOLDERS; place++) {
      const name = this.table.holderAt(entry, place)
      if (name === 0) continue
      const cut = cuts.get(name >>> 16)
      if (cut !== undefined && this.classOf(entry) >= cut) this.table.dropHolder(entry, place, name)
    }
  }

  private classOf(entry: number): number {
    const age = this.table.age(entry, this.clock)
    // Used since the sweep began.
    if (age > 0x7fff_ffff) return 0
    return Math.floor(Math.log2(age + 1) * CLASSES_PER_DOUBLING)
  }
}
