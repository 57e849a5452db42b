/**
 * The shape of the events of one stream of chat or completions: what is before and behind the choices. Most events of a
 * stream differ in their choices alone, so a comparison of a few bytes shows that an event has output and no usage. @hot
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
} from '../wire/json-bytes.ts'
import { valueAt } from './token-usage.ts'

const LF = 0x0a
const CHOICES = Buffer.from('"choices"')
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
  /** From the end of the choices to the end of the event. */
  readonly #tail: Buffer
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

  /** @param ends positions of the choices' name, of their first brace, and behind their last bracket */
  constructor(event: Buffer, ends: { head: number; first: number; close: number }, usage: NullUsage) {
    // Copies of their own: the memory of an event is reused.
    this.#head = Buffer.from(event.subarray(ends.head, ends.first + 1))
    this.#headAt = ends.head
    this.#tail = Buffer.from(event.subarray(ends.close - 1))
    this.#lineEndBytes = event.length - event.indexOf(LF, ends.close)
    this.#leastBytes = ends.head + this.#head.length + this.#tail.length
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
    const tail = this.#tail
    const tailAt = end - tail.length
    // From the end, where events differ. Bytes outside the events compare as undefined.
    for (let i = tail.length - 1; i >= 0; i--) if (events[tailAt + i] !== tail[i]) return false
    return true
  }
}

/** Position of the comma before a `"usage": null`, and position behind it; equal if there is none. */
interface NullUsage {
  start: number
  end: number
}

function toShape(event: Buffer): ChunkShape | null {
  const head = event.indexOf(CHOICES)
  if (head < 0) return null
  const open = valueAt(event, head + CHOICES.length)
  const first = skipSpace(event, open + 1)
  if (event[open] !== OPEN_BRACKET || event[first] !== OPEN_BRACE) return null
  const close = skipValue(event, open)
  if (close < 0 || event.length - close > MAX_TAIL_BYTES || !event.includes(LF, close)) return null
  const usage = findNullUsage(event, close)
  return usage === null ? null : new ChunkShape(event, { head, first, close }, usage)
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
