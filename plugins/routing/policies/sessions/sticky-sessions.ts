/**
 * Table of sessions and their workers, of fixed size, in memory that all threads share, because requests of a session
 * arrive on any thread. The session idle longest is evicted.
 * @hot
 *
 * ```
 * header | lock of each bucket | key (low lane) of each entry | record of each entry: high lane, last use, two workers
 * ```
 */
import type { Metrics, PolicyParts } from '#kernel'
import type { ManualConfig } from '../config.ts'
import { claimsRound, type Slice, SlicedSweep } from '../sliced-sweep.ts'
import type { WorkerCounters } from '../worker-counters.ts'

const HEADER_CELLS = 16
/** Header cells: when the last sweep began, and how many sessions there are. */
const SWEEP_ROUND = 0
const COUNT = 1
const BUCKET = 8
const HIGH = 0
const LAST_USE = 1
const FIRST = 2
const SECOND = 3
const RECORD_CELLS = 4
const NONE = -1
/** Attempts to take a lock before the thread sleeps; locks are held for about a microsecond. */
const SPINS = 200
const SLEEP_MS = 1
/** Sleeps after which the lock is taken anyway, because its holder must have died. */
const MOST_SLEEPS = 100
const ENTRIES_PER_STEP = 1_024

export interface StickySessionsOptions {
  readonly shared: PolicyParts['shared']
  /** Set on control, which reports the number of sessions; null on other threads. */
  readonly metrics: Metrics | null
  readonly counters: WorkerCounters
  readonly maxSessions: number
  readonly settings: Pick<ManualConfig, 'maxIdleSecs'>
  readonly sweepIntervalSecs: number
}

export class StickySessions {
  readonly sweep: SlicedSweep
  private readonly cells: Int32Array
  private readonly counters: WorkerCounters
  private readonly settings: Pick<ManualConfig, 'maxIdleSecs'>
  private readonly entryCount: number
  private readonly bucketMask: number
  private readonly keysAt: number
  private readonly recordsAt: number

  constructor(options: StickySessionsOptions) {
    this.entryCount = 1 << Math.ceil(Math.log2(options.maxSessions))
    const buckets = this.entryCount / BUCKET
    this.keysAt = HEADER_CELLS + buckets
    this.recordsAt = this.keysAt + this.entryCount
    const cells = this.recordsAt + this.entryCount * RECORD_CELLS
    this.cells = new Int32Array(options.shared('sessions', cells * Int32Array.BYTES_PER_ELEMENT))
    this.bucketMask = buckets - 1
    this.counters = options.counters
    this.settings = options.settings
    if (options.metrics !== null) this.showCount(options.metrics)
    const intervalMs = options.sweepIntervalSecs * 1000
    this.sweep = new SlicedSweep(intervalMs, () =>
      claimsRound(this.cells, SWEEP_ROUND, intervalMs) ? this.sweepRound() : null,
    )
  }

  /** @returns the entry of the session; -1 if it is unknown or has been idle too long */
  find(low: number, high: number): number {
    const entry = this.entryOf(low, high)
    return entry === NONE || this.isIdle(entry, nowSecs()) ? NONE : entry
  }

  /** Name of the session's first worker; 0 for none. */
  first(entry: number): number {
    return this.cells[this.record(entry) + FIRST]
  }

  /** Name of the worker used while the first was unavailable; 0 for none. */
  second(entry: number): number {
    return this.cells[this.record(entry) + SECOND]
  }

  touch(entry: number): void {
    this.cells[this.record(entry) + LAST_USE] = nowSecs()
  }

  /** Locks the bucket of the session against assignments by other threads. */
  lock(low: number): void {
    const { cells } = this
    const lock = HEADER_CELLS + ((low || 1) & this.bucketMask)
    for (let sleeps = 0; sleeps < MOST_SLEEPS; sleeps++) {
      for (let spin = 0; spin < SPINS; spin++) if (Atomics.compareExchange(cells, lock, 0, 1) === 0) return
      Atomics.wait(cells, lock, 1, SLEEP_MS)
    }
  }

  unlock(low: number): void {
    Atomics.store(this.cells, HEADER_CELLS + ((low || 1) & this.bucketMask), 0)
  }

  /** Assigns a worker, replacing the older one if the session has two. Call while locked. */
  assign(low: number, high: number, name: number): void {
    this.write(low, high, name)
  }

  private write(low: number, high: number, name: number): void {
    const known = this.find(low, high)
    const entry = known === NONE ? this.take(low, high) : known
    const at = this.record(entry)
    this.cells[at + LAST_USE] = nowSecs()
    this.counters.addSession(name, 1)
    const first = this.keptOrNone(at + FIRST)
    const second = this.keptOrNone(at + SECOND)
    if (first !== 0 && second !== 0) {
      this.counters.addSession(first, -1)
      this.cells[at + FIRST] = second
      this.cells[at + SECOND] = name
    } else {
      const left = first === 0 ? second : first
      this.cells[at + FIRST] = left === 0 ? name : left
      this.cells[at + SECOND] = left === 0 ? 0 : name
    }
  }

  /**
   * Records a choice of another gateway.
   * @param isFirst the session had no worker there before
   * @param wins true if the worker precedes another where gateways have made different first choices at once
   */
  learn(low: number, high: number, name: number, isFirst: boolean, wins: (other: number) => boolean): void {
    this.lock(low)
    const entry = this.find(low, high)
    const first = entry === NONE ? 0 : this.first(entry)
    const second = entry === NONE ? 0 : this.second(entry)
    if (name === first || name === second) this.touch(entry)
    else this.write(low, high, name)
    if (isFirst && first !== 0 && first !== name && second === 0 && wins(first)) {
      const at = this.record(entry)
      this.cells[at + FIRST] = name
      this.cells[at + SECOND] = first
    }
    this.unlock(low)
  }

  /** The entry of a session, idle or not; -1 for none. */
  private entryOf(low: number, high: number): number {
    const key = low || 1
    const bucket = (key & this.bucketMask) * BUCKET
    for (let entry = bucket; entry < bucket + BUCKET; entry++)
      if (this.cells[this.keysAt + entry] === key && this.cells[this.record(entry) + HIGH] === high)
        return entry
    return NONE
  }

  private record(entry: number): number {
    return this.recordsAt + entry * RECORD_CELLS
  }

  private isIdle(entry: number, now: number): boolean {
    return (now - this.cells[this.record(entry) + LAST_USE]) >>> 0 > this.settings.maxIdleSecs
  }

  /** 0 for a worker that no longer has its slot. */
  private keptOrNone(cell: number): number {
    const name = this.cells[cell]
    return name !== 0 && this.counters.isCurrent(name) ? name : 0
  }

  /** Reuses the expired entry of the session if there is one, else takes the least recently used entry. */
  private take(low: number, high: number): number {
    const key = low || 1
    const own = this.entryOf(low, high)
    const taken = own === NONE ? this.leastUsed((key & this.bucketMask) * BUCKET) : own
    if (this.cells[this.keysAt + taken] !== 0) this.forget(taken)
    this.cells[this.record(taken) + HIGH] = high
    this.cells[this.keysAt + taken] = key
    Atomics.add(this.cells, COUNT, 1)
    return taken
  }

  /** An empty entry of the bucket, or the one idle longest. */
  private leastUsed(bucket: number): number {
    const now = nowSecs()
    let taken = bucket
    let longest = -1
    for (let entry = bucket; entry < bucket + BUCKET; entry++) {
      if (this.cells[this.keysAt + entry] === 0) return entry
      const idle = (now - this.cells[this.record(entry) + LAST_USE]) >>> 0
      if (idle <= longest) continue
      taken = entry
      longest = idle
    }
    return taken
  }

  private forget(entry: number): void {
    const at = this.record(entry)
    this.cells[this.keysAt + entry] = 0
    if (this.cells[at + FIRST] !== 0) this.counters.addSession(this.cells[at + FIRST], -1)
    if (this.cells[at + SECOND] !== 0) this.counters.addSession(this.cells[at + SECOND], -1)
    this.cells[at + FIRST] = 0
    this.cells[at + SECOND] = 0
    Atomics.sub(this.cells, COUNT, 1)
  }

  private sweepRound(): Slice {
    const now = nowSecs()
    let next = 0
    return () => {
      const end = Math.min(this.entryCount, next + ENTRIES_PER_STEP)
      for (; next < end; next++) {
        const key = this.cells[this.keysAt + next]
        if (key === 0 || !this.isIdle(next, now)) continue
        this.lock(key)
        if (this.isIdle(next, now)) this.forget(next)
        this.unlock(key)
      }
      return next < this.entryCount
    }
  }

  /** Reported only after the first session. */
  private showCount(metrics: Metrics): void {
    let wasUsed = false
    metrics.onCollect(() => {
      wasUsed ||= this.cells[COUNT] !== 0
      if (!wasUsed) return
      const help = 'Sticky sessions.'
      metrics.gauge({ name: 'weir_manual_policy_cache_entries', help }).labels().value = this.cells[COUNT]
    })
  }
}

/** Wrapping 32-bit seconds. */
function nowSecs(): number {
  return (Date.now() / 1000) | 0
}
