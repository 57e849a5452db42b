/** Base class of the readers of calls. @hot */
import type { BracketScan } from '../scan/bracket-scan.ts'
import { ChunkReader, MORE, NO, YES } from '../scan/chunk-reader.ts'
import type { MarkerSearch } from '../scan/marker-search.ts'
import type { CallOutput } from './call-output.ts'

/** Reads the text of one choice, chunk by chunk; in its first state text is passed on. */
export abstract class CallReader extends ChunkReader {
  protected readonly out: CallOutput

  constructor(out: CallOutput) {
    super()
    this.out = out
  }

  end(): void {
    this.finish()
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
  protected get isClosing(): boolean {
    return false
  }

  /** The part is text, not a call. */
  protected fail(): boolean {
    this.out.fail()
    this.gathered = ''
    return this.enter(this.readText)
  }

  /** Consumes characters of the open part. */
  protected override consume(count: number): void {
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

  /** Collects text up to and including the bracket that ends it. NO if it is longer than `limit` characters. */
  protected readBrackets(brackets: BracketScan, limit: number): number {
    const end = Math.min(this.input.length, this.at + limit - this.gathered.length)
    const stop = brackets.feed(this.input, this.at, end)
    this.gather(stop < 0 ? end : stop)
    if (stop >= 0) return YES
    return end < this.input.length ? NO : MORE
  }
}
