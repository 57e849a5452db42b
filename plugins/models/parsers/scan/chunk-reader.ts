/** Base class of readers that get their text in chunks: buffers undecided text, and reads it in steps that do not depend on chunk borders. @hot */
import { isSpace } from './json-scanner.ts'
import { forgetSearchedText, type MarkerSearch } from './marker-search.ts'

/** Results of reading a marker: another text is there, the text may continue with it, it was read. */
export const NO = -1
export const MORE = 0
export const YES = 1

export abstract class ChunkReader {
  protected input = ''
  protected at = 0
  /** The text is complete: undecided text is decided. */
  protected isEnd = false
  /** Text of the current name, key or value. */
  protected gathered = ''
  /** Reads one thing: each state of a reader is a method. @returns false if more text is needed */
  protected step: () => boolean = this.readText

  push(text: string): void {
    this.input = this.at < this.input.length ? this.input.slice(this.at) + text : text
    this.at = 0
    this.#run()
  }

  /** Reads what is left once the text is complete. */
  protected finish(): void {
    this.isEnd = true
    this.#run()
  }

  #run(): void {
    while (this.step());
    forgetSearchedText()
  }

  /** The step of the first state. */
  protected abstract readText(): boolean

  protected enter(state: () => boolean): true {
    this.step = state
    return true
  }

  protected consume(count: number): void {
    this.at += count
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
    this.gather(stop)
    if (stop < place) return NO
    if (!isFound) return MORE
    this.consume(search.markers[search.found].length)
    return YES
  }

  /** Collects text up to a position. */
  protected gather(until: number): void {
    if (until <= this.at) return
    this.gathered += this.input.slice(this.at, until)
    this.consume(until - this.at)
  }

  protected takeGathered(): string {
    const { gathered } = this
    this.gathered = ''
    return gathered
  }
}
