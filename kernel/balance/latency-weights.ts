/**
 * Weighs the recent latency of workers against the others of their tier. Control computes the weights once per second, and
 * picks read them from shared memory.
 *
 * A weight multiplies the load of a worker, so it is bounded: a slow worker keeps a share of the requests. One that has had
 * no request for some seconds is weighed as if it were like the others, so that its latency is measured again.
 */
import { type CompiledTable, LEGS } from './compiled-table.ts'
import { type CounterLayout, SharedColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'
import { TIME_SCALE } from './worker-statistics.ts'

/** Interval of `update`, milliseconds. */
export const WEIGHT_PERIOD_MS = 1_000
/** Weight of a worker like the others. */
const NORMAL = 256
const MIN_RATIO = 0.5
const MAX_RATIO = 2
/** Latencies that differ less from the median count as equal: requests of one model differ by as much. */
const NOTABLE_RATIO = 1.5
/** So do latencies this close: a few milliseconds are the load of the machine, not the worker. */
const NOTABLE_MS = 10
/** Periods without a request after which a worker is tried again. */
const IDLE_PERIODS = 5

export class LatencyWeights {
  /** Weight minus NORMAL by row: 0 for a worker like the others. */
  readonly slownessBySlot: Int32Array
  readonly #layout: CounterLayout
  readonly #counters: Counters
  /** Attempts at the last update, and updates since they changed. */
  readonly #attempts: Int32Array
  readonly #idlePeriods: Uint8Array

  constructor(counters: Counters) {
    const { layout, maxWorkers } = counters
    const at = layout.shared(SharedColumn.slowness)
    this.slownessBySlot = layout.cells.subarray(at, at + maxWorkers)
    this.#layout = layout
    this.#counters = counters
    this.#attempts = new Int32Array(maxWorkers)
    this.#idlePeriods = new Uint8Array(maxWorkers)
  }

  /** Control only. A worker of several tiers is compared within the first. */
  update(table: CompiledTable): void {
    for (const { slot } of table.workers) this.#noteIdle(slot)
    const weighed = new Set<number>()
    for (const leg of LEGS)
      for (const { tiers } of table.routesOf(leg))
        for (const { slots } of tiers)
          if (slots.some((slot) => !weighed.has(slot))) this.#weigh(slots, weighed)
  }

  /** Control only: forgets the previous worker of the row. */
  reset(slot: number): void {
    Atomics.store(this.slownessBySlot, slot, 0)
  }

  #noteIdle(slot: number): void {
    const attempts = this.#cell(SharedColumn.attempts, slot)
    const isIdle = attempts === this.#attempts[slot] && this.#counters.inFlight(slot) === 0
    this.#attempts[slot] = attempts
    this.#idlePeriods[slot] = isIdle ? Math.min(this.#idlePeriods[slot] + 1, IDLE_PERIODS) : 0
  }

  #weigh(slots: Int32Array, weighed: Set<number>): void {
    const known = Array.from(slots, (slot) => this.#latency(slot)).filter((ms) => ms > 0)
    const middle = median(known)
    for (const slot of slots) {
      if (weighed.has(slot)) continue
      weighed.add(slot)
      const isMeasured = known.length > 1 && this.#latency(slot) > 0 && this.#idlePeriods[slot] < IDLE_PERIODS
      const slowness = isMeasured ? slownessOf(this.#latency(slot), middle) : 0
      if (this.slownessBySlot[slot] !== slowness) Atomics.store(this.slownessBySlot, slot, slowness)
    }
  }

  /** Moving average of the duration of successful attempts, milliseconds; 0 without one. */
  #latency(slot: number): number {
    return this.#cell(SharedColumn.durationMs, slot) / TIME_SCALE
  }

  #cell(column: number, slot: number): number {
    return this.#layout.cells[this.#layout.shared(column) + slot]
  }
}

function slownessOf(latencyMs: number, middleMs: number): number {
  const ratio = latencyMs / middleMs
  if (Math.abs(latencyMs - middleMs) < NOTABLE_MS) return 0
  if (ratio < NOTABLE_RATIO && ratio > 1 / NOTABLE_RATIO) return 0
  return Math.round((Math.min(Math.max(ratio, MIN_RATIO), MAX_RATIO) - 1) * NORMAL)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
