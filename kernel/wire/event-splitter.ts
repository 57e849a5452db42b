/**
 * Cuts the bytes of an event stream into whole events, whatever pieces they come in. An event ends with an empty line;
 * lines end with LF, CR LF or CR. Nothing is changed: the pieces given back, joined, are the bytes taken in. @hot
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */

const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

export class EventSplitter {
  /** Bytes of the event that is not whole yet. */
  #rest: Buffer = NOTHING
  /** Where in `#rest` the search goes on: nothing before it can be the end of an event. */
  #searched = 0

  /** @returns the events that are whole now, in memory of their own; empty when none is */
  push(chunk: Buffer): Buffer {
    const bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    const end = lastBorder(bytes, this.#searched)
    // A CR at the very end may be half of CR LF, so the search looks at the last two bytes again.
    if (end === 0) {
      this.#rest = bytes
      this.#searched = Math.max(0, bytes.length - 3)
      return NOTHING
    }
    this.#rest = bytes.subarray(end)
    this.#searched = Math.max(0, this.#rest.length - 3)
    return bytes.subarray(0, end)
  }

  /** Bytes that are waiting for the end of their event. */
  get waitingBytes(): number {
    return this.#rest.length
  }

  /** What is left when the stream has ended: part of an event, or nothing. */
  takeRest(): Buffer {
    const rest = this.#rest
    this.#rest = NOTHING
    this.#searched = 0
    return rest
  }
}

/**
 * Behind the last empty line; 0 when there is none. An empty line that ends with a bare CR counts only when the next
 * byte has come, since a LF after it belongs to it.
 */
function lastBorder(bytes: Buffer, from: number): number {
  for (let i = bytes.length - 1; i > from; i--) {
    if (bytes[i] === LF) {
      const before = bytes[i - 1]
      if (before === LF) return i + 1
      if (before === CR && i >= 2 && (bytes[i - 2] === LF || bytes[i - 2] === CR)) return i + 1
    } else if (bytes[i] !== CR && bytes[i - 1] === CR && i >= 2) {
      // Between i - 1 and i a bare CR ended a line; that line was empty if the one before ended right there.
      if (bytes[i - 2] === CR || bytes[i - 2] === LF) return i
    }
  }
  return 0
}
