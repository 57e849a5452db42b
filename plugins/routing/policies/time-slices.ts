/** Repeats a long piece of work every so often without holding up requests: in slices, on timers that keep nothing alive. */
import { performance } from 'node:perf_hooks'

/** Longest time that requests wait for a slice, in milliseconds. */
const SLICE_MS = 2
/** Between slices: requests that came meanwhile go first. */
const PAUSE_MS = 1

/** One round of work. @returns false when it is done */
export type Slice = () => boolean

/** Runs work to its end in slices, beginning at once. */
export function runSliced(slice: Slice): void {
  if (!runOne(slice)) setTimeout(() => runSliced(slice), PAUSE_MS).unref()
}

/** @returns true when the work is done */
function runOne(slice: Slice): boolean {
  const endsAtMs = performance.now() + SLICE_MS
  while (slice()) if (performance.now() >= endsAtMs) return false
  return true
}

/**
 * Runs a round every `intervalMs` while at least one user holds on. Threads share the tables that are swept, so a round
 * is begun by whichever thread first notices that it is due.
 */
export class SlicedSweep {
  private readonly intervalMs: number
  private readonly begin: () => Slice | null
  private users = 0
  private timer: NodeJS.Timeout | null = null

  /** @param begin starts a round; null when there is nothing to do or another thread does it */
  constructor(intervalMs: number, begin: () => Slice | null) {
    this.intervalMs = intervalMs
    this.begin = begin
  }

  open(): void {
    if (++this.users === 1) this.schedule()
  }

  close(): void {
    if (this.users === 0 || --this.users > 0 || this.timer === null) return
    clearTimeout(this.timer)
    this.timer = null
  }

  private schedule(): void {
    this.timer = setTimeout(() => this.start(), this.intervalMs).unref()
  }

  private start(): void {
    const slice = this.begin()
    if (slice === null) this.schedule()
    else this.run(slice)
  }

  private run(slice: Slice): void {
    if (runOne(slice)) this.schedule()
    else this.timer = setTimeout(() => this.run(slice), PAUSE_MS).unref()
  }
}

/**
 * Decides which thread does a round, in a cell that all share: the first to come after `intervalMs` since the last one.
 * Seconds since the epoch would wrap in 2038, so it counts in milliseconds that wrap, and compares differences.
 */
export function claimsRound(cells: Int32Array, cell: number, intervalMs: number): boolean {
  const now = Date.now() | 0
  const last = Atomics.load(cells, cell)
  // A timer may fire a little early; a round half an interval ago counts as this one.
  if (last !== 0 && ((now - last) | 0) < intervalMs / 2) return false
  return Atomics.compareExchange(cells, cell, last, now === 0 ? 1 : now) === last
}
