/** Sends the events of one answer at their times, no faster than the client reads, and applies faults. */
import type { FlowControl, StreamWriter } from '#kernel'
import type { Fault } from './faults.ts'
import type { StreamEvent } from './generation.ts'

export interface Pace {
  /** Milliseconds before the first token. */
  readonly ttftMs: number
  /** Milliseconds between tokens. */
  readonly itlMs: number
}

/** Tokens are paced by calls of `release`. */
export const STEPPED = 'stepped'

interface StreamListener {
  onTokens(count: number): void
  /** All events were written. */
  onEnd(): void
  /** A fault closes the connection. */
  onDrop(): void
}

/** Bytes sent one at a time by `drip`. */
export const DRIPPED_BYTES = 64

const BROKEN_EVENT = 'data: {"id":"broken","choices":[{"index":0,"delta":{"cont\n\n'
const BROKEN_AT = 1
/** Wait for `release`, not for the clock. */
const NEVER = Number.POSITIVE_INFINITY

export class PacedStream {
  readonly #writer: StreamWriter
  readonly #events: Iterator<StreamEvent>
  readonly #pace: Pace | typeof STEPPED
  readonly #fault: Fault
  readonly #listener: StreamListener
  readonly #startedAtMs: number
  /** Null: not generated yet. */
  #next: IteratorResult<StreamEvent> | null = null
  /** Stepped: events up to this tick may be sent. */
  #released = -1
  #sent = 0
  #drippedBytes = 0
  #timer: NodeJS.Timeout | null = null
  #isOver = false
  /** Held while the client's socket is full. */
  readonly #flow: FlowControl

  constructor(
    writer: StreamWriter,
    flow: FlowControl,
    events: Iterator<StreamEvent>,
    pace: Pace | typeof STEPPED,
    fault: Fault,
    listener: StreamListener,
  ) {
    this.#writer = writer
    this.#flow = flow
    this.#events = events
    this.#pace = pace
    this.#fault = fault
    this.#listener = listener
    this.#startedAtMs = performance.now()
    if (pace !== STEPPED) this.#advanceSoon()
  }

  /** Stepped: the token of that tick is available. Must not be called from a callback of the server library. */
  release(tick: number): void {
    this.#released = tick
    this.#advance()
  }

  /** Stops generating and writing. */
  stop(): void {
    this.#isOver = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /** Deferred, since the server library joins writes inside of its callbacks. */
  #advanceSoon(): void {
    setImmediate(() => this.#advance())
  }

  /** Writes what is due, then waits for time or client. */
  #advance(): void {
    while (!this.#isOver && !this.#flow.isHeld) {
      // Generated lazily, since events may contain values that are known only later.
      this.#next ??= this.#events.next()
      if (this.#next.done === true) break
      const event = this.#next.value
      const waitMs = this.#msUntil(event.tick)
      if (this.#sent === this.#fault.hangAfter) break
      if (this.#sent === this.#fault.dropAfter) this.#drop()
      else if (waitMs > 0) {
        if (waitMs !== NEVER) this.#timer = setTimeout(() => this.#advance(), Math.ceil(waitMs))
        break
      } else if (this.#fault.dripMs > 0 && this.#drippedBytes < DRIPPED_BYTES) {
        this.#drip(Buffer.from(event.data), 0)
        break
      } else this.#send(event)
    }
  }

  #msUntil(tick: number): number {
    if (this.#pace === STEPPED) return tick <= this.#released ? 0 : NEVER
    const dueInMs = this.#pace.ttftMs + tick * this.#pace.itlMs
    // Without a delay, skip reading the clock.
    return dueInMs === 0 ? 0 : this.#startedAtMs + dueInMs - performance.now()
  }

  #send(event: StreamEvent): void {
    const isBroken = this.#fault.isMalformed && this.#sent === BROKEN_AT
    const data = isBroken ? BROKEN_EVENT : event.data
    this.#sent += 1
    this.#next = this.#events.next()
    if (event.tokens > 0) this.#listener.onTokens(event.tokens)
    if (this.#next?.done === true) this.#end(data)
    else if (!this.#writer.write(data)) this.#flow.whenReleased(() => this.#advanceSoon())
  }

  /** One byte, then a pause; when the share of single bytes is used up, the rest of the event at once. */
  #drip(bytes: Buffer, from: number): void {
    if (this.#isOver) return
    const isLastByte = from >= bytes.length - 1
    if (this.#drippedBytes >= DRIPPED_BYTES || isLastByte) {
      this.#drippedBytes += 1
      this.#send({ ...(this.#next?.value as StreamEvent), data: bytes.subarray(from) })
      if (!this.#isOver) this.#timer = setTimeout(() => this.#advance(), this.#fault.dripMs)
      return
    }
    this.#drippedBytes += 1
    // Backpressure is ignored for single bytes.
    this.#writer.write(bytes.subarray(from, from + 1))
    this.#timer = setTimeout(() => this.#drip(bytes, from + 1), this.#fault.dripMs)
  }

  #end(lastEvent: string | Buffer): void {
    this.#isOver = true
    this.#writer.end(lastEvent)
    this.#listener.onEnd()
  }

  #drop(): void {
    this.#isOver = true
    // Deferred, since written bytes are flushed at the end of the turn.
    setImmediate(() => this.#listener.onDrop())
  }
}
