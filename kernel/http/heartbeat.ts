/**
 * Writes a comment line to event streams that are silent. All streams of a thread share one timer, so that an open stream
 * costs two links and a number. @hot
 */
import { Interval } from '../observe/timing.ts'

/** An event stream in the list. */
export interface HeartbeatTarget {
  /** Coarse time of the last write, ms; set from `Heartbeats.nowMs`. */
  lastWriteMs: number
  heartbeatNext: HeartbeatTarget | null
  heartbeatPrevious: HeartbeatTarget | null
  /** Writes the comment if the stream allows one now. */
  beat(): void
}

const TICK_MS = 500
/** Largest number of comments per turn, so that thousands of streams do not block the event loop. */
const MAX_BEATS_PER_TICK = 2_000

export class Heartbeats {
  /** Coarse clock, ms, as fresh as the last tick. */
  nowMs = performance.now()
  readonly #silenceMs: number
  #first: HeartbeatTarget | null = null
  readonly #interval = new Interval(TICK_MS, () => this.#tick())

  /** @param silenceMs 0 disables heartbeats */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  add(target: HeartbeatTarget): void {
    if (this.#silenceMs === 0) return
    if (this.#interval.start()) this.nowMs = performance.now()
    target.lastWriteMs = this.nowMs
    target.heartbeatPrevious = null
    target.heartbeatNext = this.#first
    if (this.#first !== null) this.#first.heartbeatPrevious = target
    this.#first = target
  }

  remove(target: HeartbeatTarget): void {
    const { heartbeatNext: next, heartbeatPrevious: previous } = target
    if (previous !== null) previous.heartbeatNext = next
    else if (this.#first === target) this.#first = next
    if (next !== null) next.heartbeatPrevious = previous
    target.heartbeatNext = null
    target.heartbeatPrevious = null
  }

  close(): void {
    this.#interval.stop()
  }

  /** Streams that come singly share the timer too: it stops at the first tick without any. */
  #tick(): void {
    if (this.#first === null) {
      this.close()
      return
    }
    this.nowMs = performance.now()
    const due = this.nowMs - this.#silenceMs
    let beats = 0
    for (let target: HeartbeatTarget | null = this.#first; target !== null && beats < MAX_BEATS_PER_TICK; ) {
      const next: HeartbeatTarget | null = target.heartbeatNext
      if (target.lastWriteMs <= due) {
        target.beat()
        beats++
      }
      target = next
    }
  }
}
