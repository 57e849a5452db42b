/** Base class of the readers of reasoning: passes on the parts. @hot */
import { ChunkReader } from '../scan/chunk-reader.ts'

export interface ReasoningSink {
  reasoning(delta: string): void
  text(delta: string): void
  /** The reasoning so far is complete. */
  reasoningEnded(): void
  /** The text is complete. */
  end(): void
}

/** Separates reasoning from the answer, chunk by chunk. */
export abstract class ReasoningReader extends ChunkReader {
  protected readonly sink: ReasoningSink
  #isInside: boolean

  constructor(sink: ReasoningSink, isInside: boolean) {
    super()
    this.sink = sink
    this.#isInside = isInside
  }

  get isReasoning(): boolean {
    return this.#isInside
  }

  protected set inside(isInside: boolean) {
    if (this.#isInside && !isInside) this.sink.reasoningEnded()
    this.#isInside = isInside
  }

  end(): void {
    this.finish()
    this.flush(this.input.length)
    this.sink.end()
  }

  /** Passes on everything up to a position, as reasoning or as text. */
  protected flush(place: number): void {
    if (place <= this.at) return
    const part = this.at === 0 && place === this.input.length ? this.input : this.input.slice(this.at, place)
    this.at = place
    if (this.#isInside) this.sink.reasoning(part)
    else this.sink.text(part)
  }
}
