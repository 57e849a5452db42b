/**
 * Where events of an event stream end: the one place that knows. An event ends with an empty line; lines end with LF,
 * CR LF or CR. @hot
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */
const LF = 0x0a
const CR = 0x0d
const NONE = -1

/**
 * Whether an empty line ends with the byte, or right before it. A line that ends with a bare CR counts only when the
 * next byte has come, since a LF after it belongs to it.
 *
 * @param before the byte two back, -1 where the stream begins
 * @param previous the byte one back, -1 where the stream begins
 * @returns how many bytes from `byte` on still belong to the event: 1 or 0; -1 when no event ends here
 */
export function borderAt(before: number, previous: number, byte: number): number {
  if (byte === LF) {
    if (previous === LF) return 1
    return previous === CR && (before === LF || before === CR) ? 1 : NONE
  }
  if (byte === CR || previous !== CR) return NONE
  // Between the two a bare CR ended a line; that line was empty if the one before ended right there.
  return before === CR || before === LF ? 0 : NONE
}

/**
 * Behind the first event of bytes that are whole events; -1 when none ends.
 *
 * @param from where an event begins
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
  // No byte follows that could belong to the CR.
  return previous === CR && (before === CR || before === LF) ? bytes.length : NONE
}

/** Counts the events of a stream, whatever pieces they come in. */
export class EventCounter {
  #last = NONE
  #lastButOne = NONE

  /** @returns how many events have ended with this chunk */
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
