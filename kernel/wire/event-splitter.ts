/**
 * Splits an event stream that arrives in chunks into whole events. An event ends with an empty line; lines end with LF,
 * CR LF or CR. The bytes are not changed. Each byte is read once and copied a bounded number of times, also if an event
 * arrives byte by byte. @hot
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */
import { borderAt } from './event-borders.ts'

const NOTHING = Buffer.alloc(0)
const NONE = -1
/** A larger buffer for an incomplete event is not kept for the next one. */
const MAX_KEPT_BYTES = 65_536
const MIN_HELD_BYTES = 256

export class EventSplitter {
  /** The incomplete event. */
  #held: Buffer = NOTHING
  #heldBytes = 0
  /** The last two bytes of the stream so far. */
  #last = NONE
  #lastButOne = NONE

  /** @returns the events that are complete now, in new memory; empty if none is */
  push(chunk: Buffer): Buffer {
    const { length } = chunk
    if (length === 0) return NOTHING
    const end = this.#borderIn(chunk)
    this.#lastButOne = length > 1 ? chunk[length - 2] : this.#last
    this.#last = chunk[length - 1]
    if (end < 0) {
      this.#hold(chunk, 0)
      return NOTHING
    }
    const events = Buffer.allocUnsafe(this.#heldBytes + end)
    this.#held.copy(events, 0, 0, this.#heldBytes)
    chunk.copy(events, this.#heldBytes, 0, end)
    this.#heldBytes = 0
    if (this.#held.length > MAX_KEPT_BYTES) this.#held = NOTHING
    this.#hold(chunk, end)
    return events
  }

  /** Bytes of the incomplete event. */
  get waitingBytes(): number {
    return this.#heldBytes
  }

  /** Returns the incomplete event at the end of the stream, which may be empty. */
  takeRest(): Buffer {
    const rest = this.#held.subarray(0, this.#heldBytes)
    this.#held = NOTHING
    this.#heldBytes = 0
    this.#last = NONE
    this.#lastButOne = NONE
    return rest
  }

  /** Position behind the last event that ends in this chunk; -1 if none does. */
  #borderIn(chunk: Buffer): number {
    for (let at = chunk.length - 1; at >= 0; at--) {
      const previous = at > 0 ? chunk[at - 1] : this.#last
      const before = at > 1 ? chunk[at - 2] : at === 1 ? this.#last : this.#lastButOne
      const border = borderAt(before, previous, chunk[at])
      if (border >= 0) return at + border
    }
    return NONE
  }

  #hold(chunk: Buffer, from: number): void {
    const bytes = this.#heldBytes + chunk.length - from
    if (bytes > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(MIN_HELD_BYTES, bytes, 2 * this.#held.length))
      this.#held.copy(larger, 0, 0, this.#heldBytes)
      this.#held = larger
    }
    chunk.copy(this.#held, this.#heldBytes, from)
    this.#heldBytes = bytes
  }
}
