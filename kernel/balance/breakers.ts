/**
 * One circuit breaker per worker, in shared memory, the same for all threads: it holds requests back from a worker
 * that fails, and lets few through after a while to see whether it has recovered.
 * @hot
 *
 * State, run and epoch share one cell and change by compare-and-swap. The epoch grows with each change of state, and
 * an outcome counts only in the epoch of its choice: what began before a breaker opened says nothing about now.
 */
import type { BreakerConfig } from '../config/breaker-config.ts'
import type { BreakerWatch } from '../contracts/traffic.ts'
import { WORKER_STATUS_CODE, type WorkerEntry } from '../contracts/worker.ts'
import { CLOSED, epochOf, HALF_OPEN, MAX_RUN, OPEN, runOf, stateOf, toWord, withRun } from './breaker-word.ts'
import type { Availability, Tier } from './compiled-table.ts'
import { type CounterLayout, SharedColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'
import { hasPassed, ProbePlaces } from './probe-places.ts'
import type { BreakerState, Fault } from './worker-balance.ts'

/** What `enter` answers when the breaker holds the request back. */
export const REFUSED = -1

const READY = WORKER_STATUS_CODE.ready
const STATES: readonly BreakerState[] = ['closed', 'open', 'half_open']

/** Longer times would not fit the 32 bits that a cell has for them. milliseconds */
const MAX_OPEN_MS = 0x7fff_ffff

export class Breakers {
  readonly #counters: Counters
  #config: BreakerConfig
  /** Told of what this thread records and changes. */
  watch: BreakerWatch | null = null
  readonly #now: () => number
  readonly #layout: CounterLayout
  readonly #cells: Int32Array
  readonly #statusAt: number
  readonly #wordAt: number
  readonly #openedAt: number
  readonly #unansweredAt: number
  #probes: ProbePlaces
  /** Ranks of data-parallel engines by the engine's URL. */
  #ranks: ReadonlyMap<string, readonly WorkerEntry[]> = new Map()

  /** @param now milliseconds, the same on all threads */
  constructor(counters: Counters, config: BreakerConfig, now: () => number) {
    const { layout } = counters
    this.#counters = counters
    this.#layout = layout
    this.#config = config
    this.#now = now
    this.#cells = layout.cells
    this.#statusAt = layout.shared(SharedColumn.status)
    this.#wordAt = layout.shared(SharedColumn.breaker)
    this.#openedAt = layout.shared(SharedColumn.openedAt)
    this.#unansweredAt = layout.shared(SharedColumn.unanswered)
    this.#probes = new ProbePlaces(counters, config.halfOpenProbes)
  }

  /** Other settings hold from now on; states and runs stay. */
  configure(config: BreakerConfig): void {
    this.#config = config
    this.#probes = new ProbePlaces(this.#counters, config.halfOpenProbes)
    this.#layout.bumpAvailability()
  }

  /** Ranks of one engine share its address: whether it takes connections is learnt once for all of them. */
  know(workers: readonly WorkerEntry[]): void {
    const ranks = workers.filter(({ dataParallel }) => dataParallel !== null)
    this.#ranks = Map.groupBy(ranks, ({ dataParallel }) => dataParallel?.baseUrl ?? '')
  }

  /**
   * Finds the available ones of a tier in one pass: ready, and not held back by their breakers. What was found holds
   * until a status or a breaker changes, unless a breaker is not closed: then time alone may change it.
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

  /** @returns false when one of them has a breaker that is not closed */
  #collect({ workers, slots }: Tier, found: Availability): boolean {
    const cells = this.#cells
    const statusAt = this.#statusAt
    const wordAt = this.#wordAt
    let nowMs = -1
    let count = 0
    let isSettled = true
    for (let position = 0; position < slots.length; position++) {
      const slot = slots[position]
      if (cells[statusAt + slot] !== READY) continue
      if (stateOf(cells[wordAt + slot]) !== CLOSED) {
        isSettled = false
        if (nowMs < 0) nowMs = this.#now()
        if (!this.#letsThrough(workers[position], nowMs)) continue
      }
      found.positions[count] = position
      found.slots[count++] = slot
    }
    found.length = count
    return isSettled
  }

  isAvailable(worker: WorkerEntry): boolean {
    return this.#cells[this.#statusAt + worker.slot] === READY && this.#letsThrough(worker, this.#now())
  }

  /**
   * Asks for passage for one attempt. An open breaker whose time is over becomes half-open, and a half-open one gives
   * a probe's place if one is free.
   *
   * @returns what `leave`, `succeeded` and `failed` want back, or REFUSED
   */
  enter(worker: WorkerEntry): number {
    const { slot } = worker
    for (;;) {
      const word = Atomics.load(this.#cells, this.#wordAt + slot)
      const state = stateOf(word)
      if (state === CLOSED || !this.#isOn(worker)) return epochOf(word) << 1
      const nowMs = this.#now()
      if (state === OPEN) {
        if (!this.#isOpenOver(worker, nowMs)) return REFUSED
        this.#change(worker, word, HALF_OPEN, 0)
        continue
      }
      if (!this.#probes.take(slot, nowMs)) return REFUSED
      if (epochOf(Atomics.load(this.#cells, this.#wordAt + slot)) === epochOf(word))
        return (epochOf(word) << 1) | 1
      this.#probes.giveBack(slot)
    }
  }

  /**
   * Asks for passage to the only worker that is left. Where it answered each time, though not well, its open breaker
   * slows it and does not shut it: it is half-open at once, with places of its own.
   *
   * @returns like `enter`
   */
  enterLast(worker: WorkerEntry): number {
    const { slot } = worker
    for (;;) {
      const word = Atomics.load(this.#cells, this.#wordAt + slot)
      if (stateOf(word) === CLOSED) return this.enter(worker)
      if (!this.isOnlySlowed(slot)) return REFUSED
      if (stateOf(word) === OPEN) {
        this.#change(worker, word, HALF_OPEN, 0)
        continue
      }
      if (!this.#probes.take(slot, this.#now(), this.#config.lastWorkerRequests)) return REFUSED
      if (epochOf(Atomics.load(this.#cells, this.#wordAt + slot)) === epochOf(word))
        return (epochOf(word) << 1) | 1
      this.#probes.giveBack(slot)
    }
  }

  /** True where each failure that the breaker counts was an answer of the worker. */
  isOnlySlowed(slot: number): boolean {
    return this.#cells[this.#unansweredAt + slot] === 0
  }

  /** Passage without asking, for work that names its worker; its outcome counts like any. */
  pass({ slot }: WorkerEntry): number {
    return epochOf(Atomics.load(this.#cells, this.#wordAt + slot)) << 1
  }

  /** The attempt is over or its outcome is known: a probe makes room for the next. Call it once. */
  leave({ slot }: WorkerEntry, passage: number): void {
    if ((passage & 1) === 1) this.#probes.giveBack(slot)
  }

  succeeded(worker: WorkerEntry, passage: number): void {
    this.watch?.onOutcome(worker, true)
    if (!this.#isOn(worker)) return
    const at = this.#wordAt + worker.slot
    for (;;) {
      const word = Atomics.load(this.#cells, at)
      const state = stateOf(word)
      if (epochOf(word) !== passage >> 1 || state === OPEN) return
      const run = runOf(word)
      // The common case of a worker that does well only reads.
      if (state === CLOSED && run === 0) return
      const isClosing = state === HALF_OPEN && run + 1 >= this.#successThreshold(worker)
      if (isClosing || state === CLOSED) Atomics.store(this.#cells, this.#unansweredAt + worker.slot, 0)
      if (isClosing) {
        if (!this.#change(worker, word, CLOSED, 0)) continue
        this.#tellRanks(worker, CLOSED)
        return
      }
      const next = state === CLOSED ? withRun(word, 0) : withRun(word, run + 1)
      if (Atomics.compareExchange(this.#cells, at, word, next) === word) return
    }
  }

  failed(worker: WorkerEntry, passage: number, fault: Fault): void {
    this.watch?.onOutcome(worker, false)
    if (!this.#isOn(worker)) return
    const at = this.#wordAt + worker.slot
    for (;;) {
      const word = Atomics.load(this.#cells, at)
      const state = stateOf(word)
      if (epochOf(word) !== passage >> 1 || state === OPEN) return
      const run = state === CLOSED ? runOf(word) + 1 : 1
      if (fault !== 'answered') Atomics.store(this.#cells, this.#unansweredAt + worker.slot, 1)
      if (state === HALF_OPEN || run >= this.#failureThreshold(worker)) {
        Atomics.store(this.#cells, this.#openedAt + worker.slot, this.#now() | 0)
        if (!this.#change(worker, word, OPEN, run)) continue
        if (fault === 'unreachable') this.#tellRanks(worker, OPEN)
        return
      }
      if (Atomics.compareExchange(this.#cells, at, word, withRun(word, run)) === word) return
    }
  }

  /**
   * No rank of an engine that takes no connections is asked any more; and where one has come back, the others that were
   * not just answering badly are asked at once.
   */
  #tellRanks({ slot, dataParallel }: WorkerEntry, state: typeof OPEN | typeof CLOSED): void {
    if (dataParallel === null) return
    for (const rank of this.#ranks.get(dataParallel.baseUrl) ?? []) {
      if (rank.slot === slot || !this.#isOn(rank)) continue
      const word = Atomics.load(this.#cells, this.#wordAt + rank.slot)
      if (state === OPEN && stateOf(word) !== OPEN) {
        Atomics.store(this.#cells, this.#unansweredAt + rank.slot, 1)
        Atomics.store(this.#cells, this.#openedAt + rank.slot, this.#now() | 0)
        this.#change(rank, word, OPEN, runOf(word))
      } else if (state === CLOSED && stateOf(word) === OPEN && !this.isOnlySlowed(rank.slot)) {
        this.#change(rank, word, HALF_OPEN, 0)
      }
    }
  }

  /** As a pick would find it: `half_open` as soon as the time of an open one is over. */
  state(worker: WorkerEntry): BreakerState {
    if (!this.#isOn(worker)) return 'closed'
    const state = stateOf(this.#cells[this.#wordAt + worker.slot])
    return state === OPEN && this.#isOpenOver(worker, this.#now()) ? 'half_open' : STATES[state]
  }

  /** Failures in a row since the last success; of an open breaker, those that opened it. */
  consecutiveFailures(slot: number): number {
    const word = this.#cells[this.#wordAt + slot]
    return stateOf(word) === HALF_OPEN ? 0 : runOf(word)
  }

  /** Successes in a row of a half-open breaker; 0 in the other states. */
  consecutiveSuccesses(slot: number): number {
    const word = this.#cells[this.#wordAt + slot]
    return stateOf(word) === HALF_OPEN ? runOf(word) : 0
  }

  /** Time until an open breaker lets a probe through, in milliseconds; 0 in the other states. */
  waitMs(worker: WorkerEntry): number {
    if (this.state(worker) !== 'open') return 0
    const elapsedMs = (this.#now() - this.#cells[this.#openedAt + worker.slot]) | 0
    return Math.max(0, this.#openMs(worker) - elapsedMs)
  }

  /** Control only: a worker that is new in its row begins closed. The epoch goes on, so nothing old counts for it. */
  reset(slot: number): void {
    const at = this.#wordAt + slot
    Atomics.store(this.#cells, at, toWord(CLOSED, 0, epochOf(Atomics.load(this.#cells, at)) + 1))
    Atomics.store(this.#cells, this.#unansweredAt + slot, 0)
    this.#probes.reset(slot)
    this.#layout.bumpAvailability()
  }

  #letsThrough(worker: WorkerEntry, nowMs: number): boolean {
    const state = stateOf(this.#cells[this.#wordAt + worker.slot])
    if (state === CLOSED || !this.#isOn(worker)) return true
    if (state === OPEN && !this.#isOpenOver(worker, nowMs)) return false
    // Also of one that is open until now: a probe of the time before may still run.
    return this.#probes.isFree(worker.slot, nowMs)
  }

  /** @returns false when another thread changed the breaker meanwhile */
  #change(worker: WorkerEntry, word: number, to: number, run: number): boolean {
    const next = toWord(to, run, epochOf(word) + 1)
    if (Atomics.compareExchange(this.#cells, this.#wordAt + worker.slot, word, next) !== word) return false
    this.#layout.bumpAvailability()
    this.watch?.onTransition(worker, STATES[stateOf(word)], STATES[to])
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
