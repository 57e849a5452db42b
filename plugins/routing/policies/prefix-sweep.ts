/** Brings workers that have more in the prefix table than they may back under the limit: what was used longest ago goes. */
import { HOLDERS, type PrefixTable, SWEEP_ROUND } from './prefix-table.ts'
import type { SlotLedger } from './slot-ledger.ts'
import { claimsRound, type Slice } from './time-slices.ts'

/** Ages are sorted into classes: 32 for each doubling, so that the cut is exact to some three percent. */
const CLASSES_PER_DOUBLING = 32
const CLASSES = 33 * CLASSES_PER_DOUBLING
const ENTRIES_PER_STEP = 1_024

export interface PrefixSweepOptions {
  readonly table: PrefixTable
  readonly ledger: SlotLedger
  readonly maxWorkers: number
  /** Bytes that one worker may have. */
  readonly maxPerWorker: number
  readonly intervalMs: number
}

/** Starts a round; null when no worker has too much or another thread sweeps. */
export function beginPrefixSweep(options: PrefixSweepOptions): Slice | null {
  const { table, ledger, maxWorkers, maxPerWorker, intervalMs } = options
  if (!claimsRound(table.cells, SWEEP_ROUND, intervalMs)) return null
  const over = new Map<number, Float64Array>()
  for (let slot = 0; slot < maxWorkers; slot++) {
    if (ledger.cachedBytes(slot) > maxPerWorker) over.set(slot, new Float64Array(CLASSES))
  }
  return over.size === 0 ? null : new PrefixSweep(options, over).slice
}

/** One round: counts what each worker has by age, decides how old is too old for whom, and drops that. */
class PrefixSweep {
  readonly slice: Slice = () => this.step()
  private readonly table: PrefixTable
  private readonly ledger: SlotLedger
  private readonly maxPerWorker: number
  private readonly clock: number
  /** Slot of each worker with too much → its bytes by age class. */
  private readonly over: Map<number, Float64Array>
  /** Slot → bytes, for all: the count is exact where the running one may have drifted. */
  private readonly totals: Float64Array
  /** Slot → first age class to go; null while counting. */
  private cuts: Map<number, number> | null = null
  private next = 0

  constructor(options: PrefixSweepOptions, over: Map<number, Float64Array>) {
    this.table = options.table
    this.ledger = options.ledger
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
      if (!this.ledger.isCurrent(name)) {
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
      if (this.totals[slot] !== this.ledger.cachedBytes(slot)) this.ledger.setCached(slot, this.totals[slot])
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
    // Used since the round began.
    if (age > 0x7fff_ffff) return 0
    return Math.floor(Math.log2(age + 1) * CLASSES_PER_DOUBLING)
  }
}
