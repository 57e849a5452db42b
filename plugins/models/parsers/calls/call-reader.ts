/** Base class of the readers of calls: buffers undecided text, and reads it in steps that do not depend on chunk borders. @hot */
import type { BracketScan } from '../scan/bracket-scan.ts'
import { isSpace } from '../scan/json-scanner.ts'
import { forgetSearchedText, type MarkerSearch } from '../scan/marker-search.ts'
import type { CallOutput } from './call-output.ts'

export const NO = -1
export const MORE = 0
export const YES = 1

/** The state of every reader in which text is passed on. */
export const TEXT = 0

/**
 * Reads the text of one choice, chunk by chunk. A format's reader is a machine of states: `step` does one thing with the
 * text at `at` and returns whether it could; undecided text stays in the buffer.
 */
export abstract class CallReader {
  protected readonly out: CallOutput
  protected input = ''
  protected at = 0
  /** The text is complete: undecided text is decided. */
  protected isEnd = false
  /** Text of the current name, key or value. */
  protected gathered = ''
  /** State of the format's state machine. */
  protected state = TEXT

  constructor(out: CallOutput) {
    this.out = out
  }

  push(text: string): void {
    this.input = this.at < this.input.length ? this.input.slice(this.at) + text : text
    this.at = 0
    while (this.step());
    forgetSearchedText()
  }

  end(): void {
    this.isEnd = true
    while (this.step());
    forgetSearchedText()
    // The rest of closing marks is dropped if their call was already reported.
    if (this.isClosing) this.out.close()
    else {
      const rest = this.input.slice(this.at)
      if (this.out.isOpen) {
        this.out.raw(rest)
        this.out.fail()
      } else this.out.text(rest)
    }
    this.out.end()
  }

  /** The call is complete and its closing marks are expected. */
  protected abstract get isClosing(): boolean

  /** @returns false if more text is needed */
  protected abstract step(): boolean

  protected enter(state: number): boolean {
    this.state = state
    return true
  }

  /** The part is text, not a call. */
  protected fail(): boolean {
    this.out.fail()
    this.gathered = ''
    return this.enter(TEXT)
  }

  /** Consumes characters of the open part. */
  protected consume(count: number): void {
    this.out.raw(this.input.slice(this.at, this.at + count))
    this.at += count
  }

  /** Everything up to a position is text. */
  protected textUntil(place: number): void {
    if (place <= this.at) return
    this.out.text(
      this.at === 0 && place === this.input.length ? this.input : this.input.slice(this.at, place),
    )
    this.at = place
  }

  /** Passes on the text before the first of some markers. @returns false if none was found */
  protected textBefore(search: MarkerSearch): boolean {
    const place = search.find(this.input, this.at)
    const isFound = search.found >= 0
    this.textUntil(isFound || !this.isEnd ? place : this.input.length)
    return isFound
  }

  /** Begins a part with a marker at the current position. */
  protected begin(length: number): void {
    this.out.begin()
    this.consume(length)
  }

  /** Consumes a marker at the current position. */
  protected match(marker: string): number {
    const left = this.input.length - this.at
    if (left >= marker.length) {
      if (!this.input.startsWith(marker, this.at)) return NO
      this.consume(marker.length)
      return YES
    }
    return marker.startsWith(this.input.slice(this.at)) ? MORE : NO
  }

  /** Consumes space. @returns false if the text ends with it */
  protected skipSpace(): boolean {
    let at = this.at
    while (at < this.input.length && isSpace(this.input.charCodeAt(at))) at++
    if (at > this.at) this.consume(at - this.at)
    return this.at < this.input.length
  }

  /**
   * Collects text up to the first of some markers and consumes the marker; `search.found` says which. NO if more than
   * `limit` characters precede it: then exactly that many are consumed.
   */
  protected readUntil(search: MarkerSearch, limit: number): number {
    const place = search.find(this.input, this.at)
    const isFound = search.found >= 0
    const room = limit - this.gathered.length
    const stop = Math.min(isFound || !this.isEnd ? place : this.input.length, this.at + room)
    if (stop > this.at) {
      this.gathered += this.input.slice(this.at, stop)
      this.consume(stop - this.at)
    }
    if (stop < place) return NO
    if (!isFound) return MORE
    this.consume(search.markers[search.found].length)
    return YES
  }

  /** Collects text up to and including the bracket that ends it. NO if it is longer than `limit` characters. */
  protected readBrackets(brackets: BracketScan, limit: number): number {
    const end = Math.min(this.input.length, this.at + limit - this.gathered.length)
    const stop = brackets.feed(this.input, this.at, end)
    const until = stop < 0 ? end : stop
    this.gathered += this.input.slice(this.at, until)
    this.consume(until - this.at)
    if (stop >= 0) return YES
    return end < this.input.length ? NO : MORE
  }

  protected takeGathered(): string {
    const { gathered } = this
    this.gathered = ''
    return gathered
  }
}
