/** Reasoning between two fixed marks. @hot */
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader, type ReasoningSink } from './reasoning-reader.ts'

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
