/**
 * Outliers: workers that fail far more of their recent attempts than the others of their tier, or whose streams have
 * stalled. Picks leave them out while others are available, so that a worker that fails fast does not attract traffic
 * before its breaker opens.
 * @hot
 *
 * The failure share is a moving average over the last attempts of all threads. An outlier still gets one request per
 * `TRIAL_MS`; each success makes the next one due at once, so that a repaired worker recovers quickly. A worker whose
 * breaker is not closed is ignored here: the probes of the breaker decide.
 */
import type { BreakerConfig } from '../config/breaker-config.ts'
import { hasPassed } from './breaker-cell.ts'
import type { Availability } from './compiled-table.ts'
import { type CounterLayout, SharedColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'
import type { StallReports } from './worker-balance.ts'

/** Share of a worker that has only failed. */
const ALL = 0x1_0000
/** An attempt weighs 1/8: three failures in a row make a suspect of a worker without failures. */
const WEIGHT_SHIFT = 3
/** Lowest failure share of an outlier, and its least distance to the best worker of the tier. */
const SUSPECT_SHARE = 0.3 * ALL
/** Interval of requests to an outlier that keeps failing, milliseconds. */
const TRIAL_MS = 5_000
/** A stall that no thread has confirmed for this long is over, milliseconds; threads confirm it each second. */
const STALL_CONFIRMED_MS = 3_000

/** True if the worker may be an outlier; without a clock, so that stalls that are over count too. */
export function isSuspect(layout: CounterLayout, slot: number): boolean {
  const { cells } = layout
  return (
    cells[layout.shared(SharedColumn.failureShare) + slot] >= SUSPECT_SHARE ||
    cells[layout.shared(SharedColumn.stalledAt) + slot] !== 0
  )
}

export class Outliers implements StallReports {
  readonly #layout: CounterLayout
  readonly #cells: Int32Array
  readonly #now: () => number
  readonly #shareAt: number
  readonly #triedAt: number
  readonly #progressAt: number
  readonly #stalledAt: number
  #config: BreakerConfig
  /** Of the current selection. */
  #limit = 0
  #left = 0
  #nowMs = 0

  /** @param now wall clock in milliseconds, the same on all threads */
  constructor({ layout }: Counters, config: BreakerConfig, now: () => number) {
    this.#layout = layout
    this.#cells = layout.cells
    this.#config = config
    this.#now = now
    this.#shareAt = layout.shared(SharedColumn.failureShare)
    this.#triedAt = layout.shared(SharedColumn.triedAt)
    this.#progressAt = layout.shared(SharedColumn.progressAt)
    this.#stalledAt = layout.shared(SharedColumn.stalledAt)
  }

  configure(config: BreakerConfig): void {
    this.#config = config
  }

  /** An attempt begins. */
  tried(slot: number): void {
    if (this.#cells[this.#shareAt + slot] >= SUSPECT_SHARE) this.#setTime(this.#triedAt + slot, this.#now())
  }

  succeeded(slot: number): void {
    const at = this.#shareAt + slot
    for (;;) {
      const share = this.#cells[at]
      // The common case only reads.
      if (share === 0) return
      const next = share - ((share + (1 << WEIGHT_SHIFT) - 1) >> WEIGHT_SHIFT)
      if (!this.#change(at, share, next)) continue
      if (next >= SUSPECT_SHARE) this.#setTime(this.#triedAt + slot, this.#now() - TRIAL_MS)
      return
    }
  }

  failed(slot: number): void {
    const at = this.#shareAt + slot
    this.#setTime(this.#triedAt + slot, this.#now())
    for (;;) {
      const share = this.#cells[at]
      if (this.#change(at, share, share + ((ALL - share) >> WEIGHT_SHIFT))) return
    }
  }

  /** A stream of the worker has received bytes. */
  progressed(slot: number): void {
    this.#setTime(this.#progressAt + slot, this.#now())
  }

  /** A stream of the worker has received no byte for `stallMs`; repeated each second while this is so. */
  stalled(slot: number): void {
    const at = this.#stalledAt + slot
    const isNew = this.#cells[at] === 0
    this.#setTime(at, this.#now())
    if (isNew) this.#layout.bumpAvailability()
  }

  /** Time without progress after which a stream has stalled, milliseconds; 0 disables it. */
  get stallMs(): number {
    return this.#config.stallMs
  }

  /** As `WorkerFigures` reports it. */
  figures(slot: number): { failureShare: number; isStalled: boolean } {
    this.#nowMs = this.#now()
    return { failureShare: this.#cells[this.#shareAt + slot] / ALL, isStalled: this.#isStalled(slot) }
  }

  /** Control only: forgets the previous worker of the row. */
  reset(slot: number): void {
    for (const column of [this.#shareAt, this.#triedAt, this.#progressAt, this.#stalledAt])
      Atomics.store(this.#cells, column + slot, 0)
  }

  /**
   * Compares the workers of a tier; `leavesOut` then answers for each of them.
   *
   * @returns false if none is to be left out
   */
  select(available: Availability): boolean {
    const { slots, length } = available
    this.#nowMs = this.#now()
    let least = ALL
    let most = 0
    let hasSuspects = false
    for (let i = 0; i < length; i++) {
      const share = this.#share(slots[i])
      if (share < least) least = share
      if (share > most) most = share
      hasSuspects ||= isSuspect(this.#layout, slots[i])
    }
    // Holds until the next change of availability.
    available.hasSuspects = hasSuspects
    this.#limit = least + SUSPECT_SHARE
    this.#left = Math.floor(length * this.#config.maxOutlierShare)
    return most >= this.#limit && this.#left > 0
  }

  /** Call it once for each worker of the selection, in order. */
  leavesOut(slot: number): boolean {
    if (this.#left === 0 || this.#share(slot) < this.#limit) return false
    if (!this.#isStalled(slot) && hasPassed(this.#cells[this.#triedAt + slot], TRIAL_MS, this.#nowMs))
      return false
    this.#left--
    return true
  }

  #share(slot: number): number {
    return this.#isStalled(slot) ? ALL : this.#cells[this.#shareAt + slot]
  }

  #isStalled(slot: number): boolean {
    const stalledAt = this.#cells[this.#stalledAt + slot]
    if (stalledAt === 0) return false
    if (hasPassed(stalledAt, STALL_CONFIRMED_MS, this.#nowMs)) {
      Atomics.compareExchange(this.#cells, this.#stalledAt + slot, stalledAt, 0)
      return false
    }
    // Another thread may have seen progress.
    return hasPassed(this.#cells[this.#progressAt + slot], this.#config.stallMs, this.#nowMs)
  }

  /** @returns false if another thread changed the share first */
  #change(at: number, share: number, next: number): boolean {
    if (Atomics.compareExchange(this.#cells, at, share, next) !== share) return false
    if (share >= SUSPECT_SHARE !== next >= SUSPECT_SHARE) this.#layout.bumpAvailability()
    return true
  }

  /** Low 32 bits; 0 stands for never. */
  #setTime(at: number, nowMs: number): void {
    Atomics.store(this.#cells, at, nowMs | 0 || 1)
  }
}
