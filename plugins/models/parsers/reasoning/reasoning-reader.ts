/** Base class of the readers of reasoning: buffers undecided text and passes on the parts. @hot */

import { forgetSearchedText } from '../scan/marker-search.ts'

export interface ReasoningSink {
  reasoning(delta: string): void
  text(delta: string): void
  /** The reasoning so far is complete. */
  reasoningEnded(): void
}

/** Separates reasoning from the answer, chunk by chunk. */
export abstract class ReasoningReader {
  protected readonly sink: ReasoningSink
  protected input = ''
  protected at = 0
  protected isEnd = false
  #isInside: boolean

  constructor(sink: ReasoningSink, isInside: boolean) {
    this.sink = sink
    this.#isInside = isInside
  }

  get isInside(): boolean {
    return this.#isInside
  }

  protected set inside(isInside: boolean) {
    if (this.#isInside && !isInside) this.sink.reasoningEnded()
    this.#isInside = isInside
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
    this.flush(this.input.length)
  }

  /** @returns false if more text is needed */
  protected abstract step(): boolean

  /** Passes on everything up to a position, as reasoning or as text. */
  protected flush(place: number): void {
    if (place <= this.at) return
    const part = this.at === 0 && place === this.input.length ? this.input : this.input.slice(this.at, place)
    this.at = place
    if (this.#isInside) this.sink.reasoning(part)
    else this.sink.text(part)
  }
}
