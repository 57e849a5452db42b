/**
 * Finds the ends of events in an event stream. An event ends with an empty line; lines end with LF, CR LF or CR. @hot
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
export function borderAt(before: number, previous: number, byte: number): number {
  if (byte === LF) {
    if (previous === LF) return 1
    return previous === CR && (before === LF || before === CR) ? 1 : NONE
  }
  if (byte === CR || previous !== CR) return NONE
  // A bare CR before this byte ended a line, which was empty if the line before ended right there.
  return before === CR || before === LF ? 0 : NONE
}

/**
 * Position behind the first event in bytes that are whole events; -1 if none ends.
 *
 * @param from start of an event
 */
export function nextEventEnd(bytes: Buffer, from: number): number {
  let before = LF
  let previous = LF
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    const border = borderAt(before, previous, byte)
    if (border >= 0) return at + border
    before = previous
    previous = byte
  }
  // No LF can follow the final CR.
  return previous === CR && (before === CR || before === LF) ? bytes.length : NONE
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
