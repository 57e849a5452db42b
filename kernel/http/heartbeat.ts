/**
 * Keeps silent event streams open: a comment line whenever nothing was written for a while. One timer for all
 * streams of a thread, so that an open stream costs two links and a number. @hot
 */
import type { HttpResponseSink } from './http-response-sink.ts'

const TICK_MS = 500
/** Comments written in one turn at most, so that thousands of streams do not stall the loop. */
const MAX_BEATS_PER_TICK = 2_000

export class Heartbeats {
  /** Coarse clock, ms, as fresh as the last tick. */
  nowMs = performance.now()
  readonly #silenceMs: number
  #first: HttpResponseSink | null = null
  #timer: NodeJS.Timeout | null = null

  /** @param silenceMs 0 switches heartbeats off */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  add(sink: HttpResponseSink): void {
    if (this.#silenceMs === 0) return
    if (this.#timer === null) {
      this.nowMs = performance.now()
      this.#timer = setInterval(() => this.#tick(), TICK_MS)
      this.#timer.unref()
    }
    sink.lastWriteMs = this.nowMs
    sink.heartbeatPrevious = null
    sink.heartbeatNext = this.#first
    if (this.#first !== null) this.#first.heartbeatPrevious = sink
    this.#first = sink
  }

  remove(sink: HttpResponseSink): void {
    const { heartbeatNext: next, heartbeatPrevious: previous } = sink
    if (previous !== null) previous.heartbeatNext = next
    else if (this.#first === sink) this.#first = next
    if (next !== null) next.heartbeatPrevious = previous
    sink.heartbeatNext = null
    sink.heartbeatPrevious = null
    if (this.#first === null) this.close()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #tick(): void {
    this.nowMs = performance.now()
    const due = this.nowMs - this.#silenceMs
    let beats = 0
    for (let sink = this.#first; sink !== null && beats < MAX_BEATS_PER_TICK; ) {
      const next: HttpResponseSink | null = sink.heartbeatNext
      if (sink.lastWriteMs <= due) {
        sink.beat()
        beats++
      }
      sink = next
    }
  }
}
