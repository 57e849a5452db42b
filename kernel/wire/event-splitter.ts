/**
 * Finds the ends of events, and splits an event stream that arrives in chunks into whole events. An event ends with an empty line; lines end with LF,
 * CR LF or CR. @hot
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */

const LF = 0x0a
const CR = 0x0d
const NONE = -1

/**
 * Detects an empty line that ends with the byte or right before it. A line that ends with a bare CR is complete only when
 * the next byte has arrived, since a LF after it belongs to it.
 *
 * @param before the second byte before, -1 at the start of the stream
 * @param previous the byte before, -1 at the start of the stream
 * @returns number of bytes from `byte` on that belong to the event: 1 or 0; -1 if no event ends here
 */
function borderAt(before: number, previous: number, byte: number): number {
  if (byte === LF) {
    if (previous === LF) return 1
    return previous === CR && (before === LF || before === CR) ? 1 : NONE
  }
  if (byte === CR || previous !== CR) return NONE
  // A bare CR before this byte ended a line, which was empty if the line before ended right there.
  return before === CR || before === LF ? 0 : NONE
}

/**
 * Position behind the first event in bytes that are whole events, and behind further empty lines: a worker that sends only
 * these would otherwise cause an event for each byte. -1 if none ends.
 *
 * @param from start of an event
 * @param hasCr whether any of the bytes is a CR; looked up once for all events, since it reads all bytes
 */
export function nextEventEnd(bytes: Buffer, from: number, hasCr: boolean): number {
  if (!hasCr) return nextEmptyLine(bytes, from)
  let before = LF
  let previous = LF
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    const border = borderAt(before, previous, byte)
    if (border >= 0) return skipLineEnds(bytes, at + border)
    before = previous
    previous = byte
  }
  // No LF can follow the final CR.
  return previous === CR && (before === CR || before === LF) ? bytes.length : NONE
}

/** The same without any CR: the native search is faster than a loop. bench: responses-proxy-sse, relay-sse */
function nextEmptyLine(bytes: Buffer, from: number): number {
  let at = from
  for (let end = bytes.indexOf(LF, at); end >= 0; end = bytes.indexOf(LF, at)) {
    if (end === at) return skipLineEnds(bytes, end + 1)
    at = end + 1
  }
  return NONE
}

function skipLineEnds(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === LF || bytes[at] === CR) at++
  return at
}

/** Whether lines may end with another byte than LF. */
export function hasCarriageReturn(bytes: Buffer): boolean {
  return bytes.includes(CR)
}

/** Counts the events of a stream that arrives in chunks. */
export class EventCounter {
  #last = NONE
  #lastButOne = NONE

  /** @returns number of events that end in this chunk */
  push(chunk: Buffer): number {
    let before = this.#lastButOne
    let previous = this.#last
    let events = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (borderAt(before, previous, byte) >= 0) events++
      before = previous
      previous = byte
    }
    this.#lastButOne = before
    this.#last = previous
    return events
  }
}

const NOTHING = Buffer.alloc(0)
/** A larger buffer for an incomplete event is not kept for the next one. */
const MAX_KEPT_BYTES = 65_536
const MIN_HELD_BYTES = 256
/** Two reads of a socket. */
const MAX_SPARE_BYTES = 131_072

/**
 * The bytes are not changed. Each byte is read once and copied a bounded number of times, also if an event arrives byte by
 * byte.
 */
export class EventSplitter {
  /** The incomplete event. */
  #held: Buffer = NOTHING
  #heldBytes = 0
  /** Memory of the last joined events, used again. */
  #spare: Buffer | null = null
  /** The last two bytes of the stream so far. */
  #last = NONE
  #lastButOne = NONE

  /** @returns the events that are complete now, as a view that is valid until the next call; empty if none is. bench: slow-reader */
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
    const events = this.#heldBytes === 0 ? chunk.subarray(0, end) : this.#joined(chunk, end)
    this.#heldBytes = 0
    if (this.#held.length > MAX_KEPT_BYTES) this.#held = NOTHING
    this.#hold(chunk, end)
    return events
  }

  /** The incomplete event with the bytes that complete it, and further events. */
  #joined(chunk: Buffer, end: number): Buffer {
    const bytes = this.#heldBytes + end
    const joined =
      this.#spare !== null && this.#spare.length >= bytes ? this.#spare : Buffer.allocUnsafe(bytes)
    this.#spare = bytes > MAX_SPARE_BYTES ? null : joined
    this.#held.copy(joined, 0, 0, this.#heldBytes)
    chunk.copy(joined, this.#heldBytes, 0, end)
    return joined.subarray(0, bytes)
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
