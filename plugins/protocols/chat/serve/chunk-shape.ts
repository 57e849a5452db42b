/**
 * The shape of the events of one stream of chat or completions: what is before and behind the choices. Most events of a
 * stream differ in their choices alone, so a comparison of a few bytes shows that an event has output and no usage, and mostly
 * that it neither finishes nor fails. @hot
 */
import {
  CLOSE_BRACE,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  skipWord,
  valueAt,
} from '#kernel'

const LF = 0x0a
const CHOICES = Buffer.from('"choices"')
const REASON = Buffer.from('"finish_reason"')
/** Behind a finish reason, these would make each tail another. */
const OUTPUT = [Buffer.from('"delta"'), Buffer.from('"text"')]
/** A stream with more bytes behind its choices has no shape. */
const MAX_TAIL_BYTES = 256
/** Shapes of this thread that are kept for further streams, the last used first. */
const MAX_KEPT = 8
const kept: ChunkShape[] = []

export class ChunkShape {
  /** From the name of the choices to the opening brace of the first one. */
  readonly #head: Buffer
  /** Its position in an event. */
  readonly #headAt: number
  /** From the finish reason of the last choice, which is null, or from the end of the choices, to the end of the event. */
  readonly tail: Buffer
  /** Events of this shape have no finish reason and no error. */
  readonly isQuiet: boolean
  /** From the first LF of the tail to the end of the event. */
  readonly #lineEndBytes: number
  /** Length of the shortest event of this shape. */
  readonly #leastBytes: number
  /** Length of the member `"usage": null` behind the choices, with the comma before it; 0 if there is none. */
  readonly nullBytes: number
  /** Its distance from the end of the event. */
  readonly nullBack: number

  /**
   * Shape of an event.
   *
   * @param event whole, and without usage
   * @returns null if it has no output, or something else than members behind it
   */
  static of(event: Buffer): ChunkShape | null {
    for (let i = 0; i < kept.length; i++) {
      const shape = kept[i]
      if (shape.endOf(event, 0) !== event.length) continue
      kept[i] = kept[0]
      kept[0] = shape
      return shape
    }
    const shape = toShape(event)
    if (shape === null) return null
    if (kept.length === MAX_KEPT) kept.pop()
    kept.unshift(shape)
    return shape
  }

  /** @param ends positions of the choices' name, of their first brace, of the finish reason, and behind their last bracket */
  constructor(event: Buffer, ends: ShapeEnds, usage: NullUsage) {
    // Copies of their own: the memory of an event is reused.
    this.#head = Buffer.from(event.subarray(ends.head, ends.first + 1))
    this.#headAt = ends.head
    this.isQuiet = ends.reason >= 0
    this.tail = Buffer.from(event.subarray(this.isQuiet ? ends.reason : ends.close - 1))
    this.#lineEndBytes = event.length - event.indexOf(LF, ends.close)
    this.#leastBytes = ends.head + this.#head.length + this.tail.length
    this.nullBytes = usage.end - usage.start
    this.nullBack = event.length - usage.start
  }

  /**
   * @param start of an event
   * @returns end of the event if it has this shape: output, and no usage; -1 for any other. bench: relay-sse
   */
  endOf(events: Buffer, start: number): number {
    const left = events.length - start
    if (left < this.#leastBytes) return -1
    const head = this.#head
    const headAt = start + this.#headAt
    for (let i = 0; i < head.length; i++) if (events[headAt + i] !== head[i]) return -1
    // Too short for two events of this shape: saves the search for the end.
    if (left < 2 * this.#leastBytes && this.#hasTail(events, events.length)) return events.length
    const lineEnd = events.indexOf(LF, headAt + head.length)
    const end = lineEnd + this.#lineEndBytes
    return lineEnd >= 0 && this.#hasTail(events, end) ? end : -1
  }

  #hasTail(events: Buffer, end: number): boolean {
    const tail = this.tail
    const tailAt = end - tail.length
    // From the end, where events differ. Bytes outside the events compare as undefined.
    for (let i = tail.length - 1; i >= 0; i--) if (events[tailAt + i] !== tail[i]) return false
    return true
  }
}

interface ShapeEnds {
  readonly head: number
  readonly first: number
  /** -1 without one. */
  readonly reason: number
  readonly close: number
}

/** Position of the comma before a `"usage": null`, and position behind it; equal if there is none. */
interface NullUsage {
  start: number
  end: number
}

/** Position of the finish reason of the last choice, if nothing but small members follow it; -1 without one. */
function reasonAt(event: Buffer, first: number, close: number): number {
  const at = event.lastIndexOf(REASON, close)
  if (at < first || event.length - at > MAX_TAIL_BYTES) return -1
  const end = event.subarray(at, close)
  return OUTPUT.some((name) => end.includes(name)) ? -1 : at
}

function toShape(event: Buffer): ChunkShape | null {
  const head = event.indexOf(CHOICES)
  if (head < 0) return null
  const open = valueAt(event, head + CHOICES.length)
  const first = skipSpace(event, open + 1)
  if (event[open] !== OPEN_BRACKET || event[first] !== OPEN_BRACE) return null
  const close = skipValue(event, open)
  if (close < 0 || event.length - close > MAX_TAIL_BYTES || !event.includes(LF, close)) return null
  const reason = reasonAt(event, first, close)
  // An event that finishes would have the shape of those that do not.
  if (reason >= 0 && skipWord(event, valueAt(event, reason + REASON.length), 'null') < 0) return null
  const usage = findNullUsage(event, close)
  return usage === null ? null : new ChunkShape(event, { head, first, reason, close }, usage)
}

/** Looks among the members behind the choices. @returns null for anything but members */
function findNullUsage(event: Buffer, from: number): NullUsage | null {
  const usage = { start: 0, end: 0 }
  let at = skipSpace(event, from)
  while (event[at] === COMMA) {
    const comma = at
    const name = skipSpace(event, comma + 1)
    if (event[name] !== QUOTE) return null
    const value = valueAt(event, skipString(event, name))
    const end = skipValue(event, value)
    if (end < 0) return null
    if (skipWord(event, name, '"usage"') > 0 && skipWord(event, value, 'null') > 0) {
      usage.start = comma
      usage.end = end
    }
    at = skipSpace(event, end)
  }
  return event[at] === CLOSE_BRACE ? usage : null
}
