/**
 * One circuit breaker per worker, in memory shared by all threads. An open breaker admits no requests; after `openMs` it is
 * half-open and admits a few probes to see whether the worker has recovered.
 * @hot
 *
 * State, run and epoch share one cell and change by compare-and-swap. Each change of state increments the epoch, and an
 * outcome counts only in the epoch in which its attempt was admitted.
 */
import type { BreakerConfig } from '../config/breaker-config.ts'
import type { BreakerWatch } from '../contracts/traffic.ts'
import { WORKER_STATUS_CODE, type WorkerEntry } from '../contracts/worker.ts'
import {
  CLOSED,
  epochOf,
  HALF_OPEN,
  hasPassed,
  MAX_RUN,
  OPEN,
  ProbePermits,
  runOf,
  stateOf,
  toCell,
  withRun,
} from './breaker-cell.ts'
import type { Availability, Tier } from './compiled-table.ts'
import { type CounterLayout, SharedColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'
import { isSuspect } from './outliers.ts'
import type { BreakerState, Fault } from './worker-balance.ts'

/** Result of `acquire` if the breaker does not admit the request. */
export const REFUSED = -1

const READY = WORKER_STATUS_CODE.ready
const STATES: readonly BreakerState[] = ['closed', 'open', 'half_open']

/** Limit of 32-bit times, milliseconds. */
const MAX_OPEN_MS = 0x7fff_ffff

export class Breakers {
  readonly #counters: Counters
  #config: BreakerConfig
  /** Receives the outcomes and transitions of this thread. */
  watch: BreakerWatch | null = null
  readonly #now: () => number
  readonly #layout: CounterLayout
  readonly #cells: Int32Array
  readonly #statusAt: number
  readonly #cellAt: number
  readonly #openedAt: number
  readonly #unansweredAt: number
  readonly #failureShareAt: number
  #probes: ProbePermits
  /** Ranks of data-parallel engines by the engine's URL. */
  #ranks: ReadonlyMap<string, readonly WorkerEntry[]> = new Map()

  /** @param now wall clock in milliseconds, the same on all threads */
  constructor(counters: Counters, config: BreakerConfig, now: () => number) {
    const { layout } = counters
    this.#counters = counters
    this.#layout = layout
    this.#config = config
    this.#now = now
    this.#cells = layout.cells
    this.#statusAt = layout.shared(SharedColumn.status)
    this.#cellAt = layout.shared(SharedColumn.breaker)
    this.#openedAt = layout.shared(SharedColumn.openedAt)
    this.#unansweredAt = layout.shared(SharedColumn.unanswered)
    this.#failureShareAt = layout.shared(SharedColumn.failureShare)
    this.#probes = new ProbePermits(counters, config.halfOpenProbes)
  }

  /** Applies new settings; states and runs stay. */
  configure(config: BreakerConfig): void {
    this.#config = config
    this.#probes = new ProbePermits(this.#counters, config.halfOpenProbes)
    this.#layout.bumpAvailability()
  }

  /** Groups the ranks of each engine, which share an address and open and recover together. */
  setWorkers(workers: readonly WorkerEntry[]): void {
    const ranks = workers.filter(({ dataParallel }) => dataParallel !== null)
    this.#ranks = Map.groupBy(ranks, ({ dataParallel }) => dataParallel?.baseUrl ?? '')
  }

  /**
   * Finds the available workers of a tier: ready and admitted by their breakers. The result is cached until a status or a
   * breaker changes; while a breaker is not closed it is not cached, because it changes with time.
   */
  findAvailable(tier: Tier): Availability {
    const { found } = tier
    const stamp = this.#layout.availability
    if (found.isSettled && found.stamp === stamp) return found
    found.stamp = stamp
    found.isSettled = this.#collect(tier, found)
    found.isIndexed = false
    return found
  }

  /** @returns false if a breaker of the tier is not closed */
  #collect({ workers, slots }: Tier, found: Availability): boolean {
    const cells = this.#cells
    const statusAt = this.#statusAt
    const cellAt = this.#cellAt
    let nowMs = -1
    let count = 0
    let isSettled = true
    let hasSuspects = false
    for (let position = 0; position < slots.length; position++) {
      const slot = slots[position]
      if (cells[statusAt + slot] !== READY) continue
      if (stateOf(cells[cellAt + slot]) !== CLOSED) {
        isSettled = false
        if (nowMs < 0) nowMs = this.#now()
        if (!this.#admits(workers[position], nowMs)) continue
      } else if (isSuspect(this.#layout, slot)) hasSuspects = true
      found.positions[count] = position
      found.slots[count++] = slot
    }
    found.length = count
    found.hasSuspects = hasSuspects
    return isSettled
  }

  isAvailable(worker: WorkerEntry): boolean {
    return this.#cells[this.#statusAt + worker.slot] === READY && this.#admits(worker, this.#now())
  }

  /**
   * Admits one attempt. An open breaker whose time is over becomes half-open; a half-open one admits a limited number of
   * probes.
   *
   * @returns permit for `release`, `succeeded` and `failed`, or REFUSED
   */
  acquire(worker: WorkerEntry): number {
    const { slot } = worker
    for (;;) {
      const cell = Atomics.load(this.#cells, this.#cellAt + slot)
      const state = stateOf(cell)
      if (state === CLOSED || !this.#isOn(worker)) return epochOf(cell) << 1
      const nowMs = this.#now()
      if (state === OPEN) {
        if (!this.#isOpenOver(worker, nowMs)) return REFUSED
        this.#change(worker, cell, HALF_OPEN, 0)
        continue
      }
      const permit = this.#acquireProbe(slot, cell, nowMs)
      if (permit !== null) return permit
    }
  }

  /** @param cell of a half-open breaker @returns as `acquire`; null if another thread changed the breaker meanwhile */
  #acquireProbe(slot: number, cell: number, nowMs: number, limit?: number): number | null {
    if (!this.#probes.acquire(slot, nowMs, limit)) return REFUSED
    const epoch = epochOf(cell)
    if (epochOf(Atomics.load(this.#cells, this.#cellAt + slot)) === epoch) return (epoch << 1) | 1
    this.#probes.release(slot)
    return null
  }

  /**
   * Admits one attempt to the last worker of a model. If every counted failure was a response, the open breaker becomes
   * half-open at once, with `lastWorkerRequests` permits.
   *
   * @returns as `acquire`
   */
  acquireThrottled(worker: WorkerEntry): number {
    const { slot } = worker
    for (;;) {
      const cell = Atomics.load(this.#cells, this.#cellAt + slot)
      if (stateOf(cell) === CLOSED) return this.acquire(worker)
      if (!this.isThrottledOnly(slot)) return REFUSED
      if (stateOf(cell) === OPEN) {
        this.#change(worker, cell, HALF_OPEN, 0)
        continue
      }
      const permit = this.#acquireProbe(slot, cell, this.#now(), this.#config.lastWorkerRequests)
      if (permit !== null) return permit
    }
  }

  /** True if every failure that the breaker counts was a response of the worker. */
  isThrottledOnly(slot: number): boolean {
    return this.#cells[this.#unansweredAt + slot] === 0
  }

  /** Always admits, for calls to a fixed worker; the outcome counts. */
  acquireAlways({ slot }: WorkerEntry): number {
    return epochOf(Atomics.load(this.#cells, this.#cellAt + slot)) << 1
  }

  /** Releases the permit when the outcome is known. Call it once. */
  release({ slot }: WorkerEntry, permit: number): void {
    if ((permit & 1) === 1) this.#probes.release(slot)
  }

  succeeded(worker: WorkerEntry, permit: number): void {
    this.watch?.onOutcome(worker, true)
    if (!this.#isOn(worker)) return
    const at = this.#cellAt + worker.slot
    for (;;) {
      const cell = Atomics.load(this.#cells, at)
      const state = stateOf(cell)
      if (epochOf(cell) !== permit >> 1 || state === OPEN) return
      const run = runOf(cell)
      // The common case only reads.
      if (state === CLOSED && run === 0) return
      const isClosing = state === HALF_OPEN && run + 1 >= this.#successThreshold(worker)
      if (isClosing || state === CLOSED) Atomics.store(this.#cells, this.#unansweredAt + worker.slot, 0)
      if (isClosing) {
        Atomics.store(this.#cells, this.#failureShareAt + worker.slot, 0)
        if (!this.#change(worker, cell, CLOSED, 0)) continue
        this.#updateRanks(worker, CLOSED)
        return
      }
      const next = state === CLOSED ? withRun(cell, 0) : withRun(cell, run + 1)
      if (Atomics.compareExchange(this.#cells, at, cell, next) === cell) return
    }
  }

  failed(worker: WorkerEntry, permit: number, fault: Fault): void {
    this.watch?.onOutcome(worker, false)
    if (!this.#isOn(worker)) return
    const at = this.#cellAt + worker.slot
    for (;;) {
      const cell = Atomics.load(this.#cells, at)
      const state = stateOf(cell)
      if (epochOf(cell) !== permit >> 1 || state === OPEN) return
      const run = state === CLOSED ? runOf(cell) + 1 : 1
      if (fault !== 'answered') Atomics.store(this.#cells, this.#unansweredAt + worker.slot, 1)
      if (state === HALF_OPEN || run >= this.#failureThreshold(worker)) {
        Atomics.store(this.#cells, this.#openedAt + worker.slot, this.#now() | 0)
        if (!this.#change(worker, cell, OPEN, run)) continue
        if (fault === 'unreachable') this.#updateRanks(worker, OPEN)
        return
      }
      if (Atomics.compareExchange(this.#cells, at, cell, withRun(cell, run)) === cell) return
    }
  }

  /**
   * Opens the breakers of all ranks of an engine that accepts no connections. When one rank recovers, the others become
   * half-open, except those whose failures were all responses.
   */
  #updateRanks({ slot, dataParallel }: WorkerEntry, state: typeof OPEN | typeof CLOSED): void {
    if (dataParallel === null) return
    for (const rank of this.#ranks.get(dataParallel.baseUrl) ?? []) {
      if (rank.slot === slot || !this.#isOn(rank)) continue
      const cell = Atomics.load(this.#cells, this.#cellAt + rank.slot)
      if (state === OPEN && stateOf(cell) !== OPEN) {
        Atomics.store(this.#cells, this.#unansweredAt + rank.slot, 1)
        Atomics.store(this.#cells, this.#openedAt + rank.slot, this.#now() | 0)
        this.#change(rank, cell, OPEN, runOf(cell))
      } else if (state === CLOSED && stateOf(cell) === OPEN && !this.isThrottledOnly(rank.slot)) {
        this.#change(rank, cell, HALF_OPEN, 0)
      }
    }
  }

  /** State as a pick sees it: `half_open` as soon as the time of an open breaker is over. */
  state(worker: WorkerEntry): BreakerState {
    if (!this.#isOn(worker)) return 'closed'
    const state = stateOf(this.#cells[this.#cellAt + worker.slot])
    return state === OPEN && this.#isOpenOver(worker, this.#now()) ? 'half_open' : STATES[state]
  }

  /** Consecutive failures since the last success, of an open breaker those that opened it; successes of a half-open one. */
  runs(slot: number): { failures: number; successes: number } {
    const cell = this.#cells[this.#cellAt + slot]
    const run = runOf(cell)
    return stateOf(cell) === HALF_OPEN ? { failures: 0, successes: run } : { failures: run, successes: 0 }
  }

  /** Time until an open breaker admits a probe, milliseconds; 0 in other states. */
  waitMs(worker: WorkerEntry): number {
    if (this.state(worker) !== 'open') return 0
    const elapsedMs = (this.#now() - this.#cells[this.#openedAt + worker.slot]) | 0
    return Math.max(0, this.#openMs(worker) - elapsedMs)
  }

  /** Control only: an open breaker becomes half-open, because the worker answers its probes again. */
  recovered(worker: WorkerEntry): void {
    const cell = Atomics.load(this.#cells, this.#cellAt + worker.slot)
    if (stateOf(cell) === OPEN) this.#change(worker, cell, HALF_OPEN, 0)
  }

  /** Control only: closes the breaker of a new worker. The epoch increases, so older outcomes do not count. */
  reset(slot: number): void {
    const at = this.#cellAt + slot
    Atomics.store(this.#cells, at, toCell(CLOSED, 0, epochOf(Atomics.load(this.#cells, at)) + 1))
    Atomics.store(this.#cells, this.#unansweredAt + slot, 0)
    this.#probes.reset(slot)
    this.#layout.bumpAvailability()
  }

  #admits(worker: WorkerEntry, nowMs: number): boolean {
    const state = stateOf(this.#cells[this.#cellAt + worker.slot])
    if (state === CLOSED || !this.#isOn(worker)) return true
    if (state === OPEN && !this.#isOpenOver(worker, nowMs)) return false
    // For an open breaker too: a probe admitted earlier may still run.
    return this.#probes.isAvailable(worker.slot, nowMs)
  }

  /** @returns false if another thread changed the breaker first */
  #change(worker: WorkerEntry, cell: number, to: number, run: number): boolean {
    const next = toCell(to, run, epochOf(cell) + 1)
    if (Atomics.compareExchange(this.#cells, this.#cellAt + worker.slot, cell, next) !== cell) return false
    this.#layout.bumpAvailability()
    this.watch?.onTransition(worker, STATES[stateOf(cell)], STATES[to])
    return true
  }

  #isOpenOver(worker: WorkerEntry, nowMs: number): boolean {
    return hasPassed(this.#cells[this.#openedAt + worker.slot], this.#openMs(worker), nowMs)
  }

  #isOn({ resilience }: WorkerEntry): boolean {
    return this.#config.enabled && resilience?.disableBreaker !== true
  }

  #openMs({ resilience }: WorkerEntry): number {
    return Math.min(resilience?.openMs ?? this.#config.openMs, MAX_OPEN_MS)
  }

  #failureThreshold({ resilience }: WorkerEntry): number {
    return Math.min(resilience?.failureThreshold ?? this.#config.failureThreshold, MAX_RUN)
  }

  #successThreshold({ resilience }: WorkerEntry): number {
    return Math.min(resilience?.successThreshold ?? this.#config.successThreshold, MAX_RUN)
  }
}
