/**
 * Cuts the bytes of an event stream into whole events, whatever pieces they come in. An event ends with an empty line;
 * lines end with LF, CR LF or CR. Nothing is changed: the pieces given back, joined, are the bytes taken in. Each byte
 * is looked at once and copied a bounded number of times, also when an event comes byte by byte. @hot
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */
import { borderAt } from './event-borders.ts'

const NOTHING = Buffer.alloc(0)
const NONE = -1
/** Memory for events under way that is kept for the next; more is let go. */
const MAX_KEPT_BYTES = 65_536
const MIN_HELD_BYTES = 256

export class EventSplitter {
  /** Begins with the event that is not whole yet. */
  #held: Buffer = NOTHING
  #heldBytes = 0
  /** The last two bytes of the stream so far, whether they have been given back or not. */
  #last = NONE
  #lastButOne = NONE

  /** @returns the events that are whole now, in memory of their own; empty when none is */
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

  /** Bytes that are waiting for the end of their event. */
  get waitingBytes(): number {
    return this.#heldBytes
  }

  /** What is left when the stream has ended: part of an event, or nothing. */
  takeRest(): Buffer {
    const rest = this.#held.subarray(0, this.#heldBytes)
    this.#held = NOTHING
    this.#heldBytes = 0
    this.#last = NONE
    this.#lastButOne = NONE
    return rest
  }

  /** Behind the last event that ends in this chunk; -1 when none does. */
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
