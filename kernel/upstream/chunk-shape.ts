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
const NO_BYTES = Buffer.alloc(0)

export class ChunkShape {
  /** From the name of the choices to the opening brace of the first one. */
  #head = NO_BYTES
  /** Its position in an event; -1 before the first event. */
  #headAt = -1
  /** From the end of the choices to the end of the event. */
  #tail = NO_BYTES
  /** From the first LF of the tail to the end of the event. */
  #lineEndBytes = 0
  /** Length of the shortest event of this shape. */
  #least = 0
  #nullBytes = 0
  #nullBack = 0

  /** Length of the member `"usage": null` behind the choices, with the comma before it; 0 if there is none. */
  get nullBytes(): number {
    return this.#nullBytes
  }

  /** Its distance from the end of the event. */
  get nullBack(): number {
    return this.#nullBack
  }

  /**
   * @param start of an event
   * @returns end of the event if it has this shape: output, and no usage; -1 for any other. bench: relay-sse
   */
  endOf(events: Buffer, start: number): number {
    const left = events.length - start
    if (this.#headAt < 0 || left < this.#least) return -1
    const head = this.#head
    const headAt = start + this.#headAt
    for (let i = 0; i < head.length; i++) if (events[headAt + i] !== head[i]) return -1
    // Too short for two events of this shape: saves the search for the end.
    if (left < 2 * this.#least && this.#hasTail(events, events.length)) return events.length
    let end = headAt + head.length
    while (end < events.length && events[end] !== LF) end++
    end += this.#lineEndBytes
    return this.#hasTail(events, end) ? end : -1
  }

  #hasTail(events: Buffer, end: number): boolean {
    const tail = this.#tail
    const tailAt = end - tail.length
    // From the end, where events differ. Bytes outside the events compare as undefined.
    for (let i = tail.length - 1; i >= 0; i--) if (events[tailAt + i] !== tail[i]) return false
    return true
  }

  /**
   * Takes the shape of an event.
   *
   * @param event whole, and without usage
   * @returns false if it has no output, or something else than members behind it; the shape stays as it was
   */
  learn(event: Buffer): boolean {
    const headAt = event.indexOf(CHOICES)
    if (headAt < 0) return false
    const open = valueAt(event, headAt + CHOICES.length)
    if (event[open] !== OPEN_BRACKET) return false
    const first = skipSpace(event, open + 1)
    if (event[first] !== OPEN_BRACE) return false
    const close = skipValue(event, open)
    const lineEnd = event.indexOf(LF, close)
    if (close < 0 || lineEnd < 0 || event.length - close > MAX_TAIL_BYTES) return false
    if (!this.#readMembers(event, close)) return false
    this.#head = Buffer.from(event.subarray(headAt, first + 1))
    this.#headAt = headAt
    this.#tail = Buffer.from(event.subarray(close - 1))
    this.#lineEndBytes = event.length - lineEnd
    this.#least = headAt + this.#head.length + this.#tail.length
    return true
  }

  /** Looks for `"usage": null` among the members behind the choices. @returns false for anything but members */
  #readMembers(event: Buffer, from: number): boolean {
    let nullBack = 0
    let nullBytes = 0
    let at = skipSpace(event, from)
    while (event[at] === COMMA) {
      const comma = at
      const name = skipSpace(event, comma + 1)
      if (event[name] !== QUOTE) return false
      const value = valueAt(event, skipString(event, name))
      const end = skipValue(event, value)
      if (end < 0) return false
      if (skipWord(event, name, '"usage"') > 0 && skipWord(event, value, 'null') > 0) {
        nullBack = event.length - comma
        nullBytes = end - comma
      }
      at = skipSpace(event, end)
    }
    if (event[at] !== CLOSE_BRACE) return false
    this.#nullBack = nullBack
    this.#nullBytes = nullBytes
    return true
  }
}
