/**
 * Finds workers whose streams have stalled: no stream of the worker received a byte while one of them waits for it. Notifies
 * streams without a byte.
 */
import type { StallReports } from '../balance/worker-balance.ts'
import { Interval } from '../observe/timing.ts'

/** Period of the check, and resolution of the time of a byte, milliseconds. */
const CHECK_MS = 1_000

export interface WatchedStream {
  /** Place in the list, maintained by the list; -1: not in it. */
  place: number
  readonly slot: number
  /** Start of its attempt, `performance.now()`. */
  readonly attemptedAtMs: number
  /** `StalledStreams.nowMs` of the last byte; -1 before the first. */
  readonly byteAtMs: number
  /** The client reads too slowly. */
  readonly isPaused: boolean
  /** Called with each check while the response has no byte. @param nowMs `performance.now()` */
  isSilent(nowMs: number): void
}

export class StalledStreams {
  /** Time of the last check: a clock that costs nothing per chunk. */
  nowMs = performance.now()
  /**
   * Not a Set: its tables, replaced every few hundred streams, would each keep the next one and the streams in it from the
   * garbage collector of young objects. bench: relay-sse
   */
  readonly #open: WatchedStream[] = []
  readonly #reports: StallReports
  readonly #interval = new Interval(CHECK_MS, () => this.#check())

  constructor(reports: StallReports) {
    this.#reports = reports
  }

  add(stream: WatchedStream): void {
    stream.place = this.#open.push(stream) - 1
    if (this.#interval.start()) this.nowMs = performance.now()
  }

  remove(stream: WatchedStream): void {
    const { place } = stream
    const last = this.#open.at(-1)
    if (place < 0 || last === undefined) return
    this.#open[place] = last
    last.place = place
    stream.place = -1
    this.#open.pop()
  }

  close(): void {
    this.#interval.stop()
  }

  #check(): void {
    if (this.#open.length === 0) {
      this.close()
      return
    }
    const lastMs = this.nowMs
    const { stallMs } = this.#reports
    this.nowMs = performance.now()
    const waiting = new Set<number>()
    const progressed = new Set<number>()
    // Backwards, because a stream that ends in the call is replaced by the last one.
    for (let at = this.#open.length - 1; at >= 0; at--) {
      const stream = this.#open[at]
      const { slot, attemptedAtMs, byteAtMs, isPaused } = stream
      if (byteAtMs >= lastMs) progressed.add(slot)
      else if (!isPaused && this.nowMs - Math.max(attemptedAtMs, byteAtMs) >= stallMs) waiting.add(slot)
      if (byteAtMs < 0) stream.isSilent(this.nowMs)
    }
    for (const slot of progressed) this.#reports.progressed(slot)
    if (stallMs > 0) for (const slot of waiting) if (!progressed.has(slot)) this.#reports.stalled(slot)
  }
}
