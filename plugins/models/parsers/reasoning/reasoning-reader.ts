/** Readers of reasoning: their base class, which passes on the parts, and the reader of reasoning between two fixed marks. @hot */
import { ChunkReader } from '../scan/chunk-reader.ts'
import { MarkerSearch } from '../scan/marker-search.ts'

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

export interface TaggedReasoning {
  readonly start: string
  readonly end: string
  /** Marks that are removed from the answer. */
  readonly wrappers?: readonly string[]
  /** Removes an end mark without a start mark from the answer. */
  readonly dropsStrayEnd?: boolean
}

export interface CompiledReasoning {
  /** Found: 0 the start, 1 the end. */
  readonly inside: MarkerSearch
  /** Found: 0 the start, others are dropped. */
  readonly outside: MarkerSearch
}

export function compileReasoning(format: TaggedReasoning): CompiledReasoning {
  const dropped = (format.wrappers ?? []).concat(format.dropsStrayEnd === true ? [format.end] : [])
  return {
    inside: new MarkerSearch([format.start, format.end]),
    outside: new MarkerSearch([format.start].concat(dropped)),
  }
}

const START = 0
const END = 1

/** Reads reasoning between two fixed marks. */
export class TaggedReasoningReader extends ReasoningReader {
  readonly #marks: CompiledReasoning

  constructor(sink: ReasoningSink, marks: CompiledReasoning, isInside: boolean) {
    super(sink, isInside)
    this.#marks = marks
  }

  protected override readText(): boolean {
    const { isReasoning: isInside } = this
    const search = isInside ? this.#marks.inside : this.#marks.outside
    const place = search.find(this.input, this.at)
    const { found } = search
    this.flush(found < 0 && this.isEnd ? this.input.length : place)
    if (found < 0) return false
    this.at += search.markers[found].length
    // A start mark inside reasoning, as after a prompt that ended with one, is ignored.
    if (isInside ? found === END : found === START) this.inside = !isInside
    return true
  }
}
