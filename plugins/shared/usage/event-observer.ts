/**
 * Observes event streams that pass unchanged: counts their output, reads their usage, and keeps their last bytes. Events are
 * looked at whole, so that the result does not depend on how the worker's bytes are split. @hot
 */
import {
  EventSplitter,
  hasCarriageReturn,
  nextEventEnd,
  type ObservedEnd,
  type ResponseObserver,
  type StreamEnd,
  StreamTail,
  type TokenUsage,
} from '#kernel'

const LF = 0x0a
/** Usage behind a longer event is not read: the stream is estimated from there on. */
export const MAX_EVENT_BYTES = 1_048_576
/** Bytes of the tail that a format can inspect. */
const TAIL_BYTES = 1_024
/** Buffers kept for reuse, because allocating one costs more than processing many chunks. */
const MAX_IDLE = 256
const NO_BYTES = Buffer.alloc(0)
const idle: StreamTail[] = []

/** The last bytes of a stream that a format inspects. Released by `giveTail`. */
export function takeTail(): StreamTail {
  return idle.pop() ?? new StreamTail(TAIL_BYTES)
}

export function giveTail(tail: StreamTail): void {
  if (idle.length >= MAX_IDLE) return
  tail.clear()
  idle.push(tail)
}

export abstract class EventObserver implements ResponseObserver {
  /** In each event with output. */
  readonly #marker: Buffer
  /** Position of the marker in its line; -1 before the first. The lines of a stream begin alike. */
  #markerAt = -1
  #splitter: EventSplitter | null = null
  readonly #tail = takeTail()
  #outputEvents = 0
  #unreadBytes = 0

  constructor(marker: Buffer) {
    this.#marker = marker
  }

  /** Position of the next usage from an offset on; -1 for none. */
  protected abstract findUsage(events: Buffer, from: number): number
  /** Reads an event with usage. */
  protected abstract readUsage(event: Buffer): void
  protected abstract get usage(): TokenUsage | null
  /** The usage read so far has the output, so that output events need not be counted. */
  protected abstract get hasOutputUsage(): boolean
  /** @param tail last bytes of the stream */
  protected abstract endOf(tail: Buffer): StreamEnd

  chunk(bytes: Buffer): Buffer {
    this.#tail.push(bytes)
    if (this.#unreadBytes > 0) this.#unreadBytes += bytes.length
    else this.#read(this.#wholeEvents(bytes))
    return bytes
  }

  end(): ObservedEnd {
    const end = this.endOf(this.#tail.bytes())
    giveTail(this.#tail)
    const { usage, hasOutputUsage } = this
    const [outputEvents, unreadBytes] = [this.#outputEvents, this.#unreadBytes]
    return { end, rest: NO_BYTES, usage, hasOutputUsage, outputEvents, unreadBytes }
  }

  #wholeEvents(bytes: Buffer): Buffer {
    const { length } = bytes
    const isWhole = bytes[length - 1] === LF && bytes[length - 2] === LF
    if (isWhole && (this.#splitter === null || this.#splitter.waitingBytes === 0)) return bytes
    this.#splitter ??= new EventSplitter()
    const events = this.#splitter.push(bytes)
    if (this.#splitter.waitingBytes > MAX_EVENT_BYTES) this.#unreadBytes = this.#splitter.takeRest().length
    return events
  }

  #read(events: Buffer): void {
    if (!this.hasOutputUsage) this.#count(events)
    let start = 0
    let hasCr: boolean | null = null
    for (let at = this.findUsage(events, 0); at >= 0; at = this.findUsage(events, start)) {
      let end = start
      while (end <= at) {
        start = end
        hasCr ??= hasCarriageReturn(events)
        const next = nextEventEnd(events, start, hasCr)
        end = next < 0 ? events.length : next
      }
      this.readUsage(events.subarray(start, end))
      start = end
    }
  }

  #count(events: Buffer): void {
    const marker = this.#marker
    let at = this.#isMarkedAlike(events) ? this.#markerAt : events.indexOf(marker)
    if (this.#markerAt < 0) this.#markerAt = at < 0 ? at : at - events.lastIndexOf(LF, at) - 1
    while (at >= 0) {
      this.#outputEvents++
      // What is left is too short for another event.
      if (events.length - at < this.#markerAt) return
      at = events.indexOf(marker, at + marker.length)
    }
  }

  /** True if the first line has the marker where the line of the first output had it: saves a search. bench: relay-sse */
  #isMarkedAlike(events: Buffer): boolean {
    const start = this.#markerAt
    if (start < 0) return false
    for (let i = 0; i < this.#marker.length; i++) if (events[start + i] !== this.#marker[i]) return false
    return true
  }
}
