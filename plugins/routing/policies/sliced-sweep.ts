/** Runs long work periodically in time slices, so that it does not delay requests; its timers are unreferenced. */
import { performance } from 'node:perf_hooks'

/** Maximum duration of a slice, in milliseconds. */
const SLICE_MS = 2
/** Pause between slices, in milliseconds. */
const PAUSE_MS = 1

/** A step of the work. @returns false when the work is done */
export type Slice = () => boolean

/** Runs work in slices until it is done; starts immediately. */
export function runSliced(slice: Slice): void {
  if (!runForSliceMs(slice)) setTimeout(() => runSliced(slice), PAUSE_MS).unref()
}

/** @returns true when the work is done */
function runForSliceMs(slice: Slice): boolean {
  const endsAtMs = performance.now() + SLICE_MS
  while (slice()) if (performance.now() >= endsAtMs) return false
  return true
}

/**
 * Runs a sweep every `intervalMs` while at least one user has it open. Threads share the swept tables, so the thread
 * that first notices that a sweep is due runs it.
 */
export class SlicedSweep {
  private readonly intervalMs: number
  private readonly begin: () => Slice | null
  private users = 0
  private timer: NodeJS.Timeout | null = null

  /** @param begin starts a sweep; returns null if there is nothing to do or another thread runs it */
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
    if (runForSliceMs(slice)) this.schedule()
    else this.timer = setTimeout(() => this.run(slice), PAUSE_MS).unref()
  }
}

/**
 * Decides in a shared cell which thread runs a sweep: the first one at least `intervalMs` after the last sweep.
 * Times are wrapping 32-bit milliseconds, so differences are compared.
 */
export function claimsRound(cells: Int32Array, cell: number, intervalMs: number): boolean {
  const now = Date.now() | 0
  const last = Atomics.load(cells, cell)
  // Timers may fire early: a sweep within the last half interval is the current one.
  if (last !== 0 && ((now - last) | 0) < intervalMs / 2) return false
  return Atomics.compareExchange(cells, cell, last, now === 0 ? 1 : now) === last
}
