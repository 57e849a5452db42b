/** Reads reasoning between `<think>` marks with an optional suffix. @hot */
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader } from './reasoning-reader.ts'

const MAX_SUFFIX = 64
const START = '<think'
const END = '</think'
const PLAIN_END = '</think>'
const OUTSIDE = new MarkerSearch([START, PLAIN_END])
/** Any end mark: the prompt may have opened the reasoning with an unknown suffix. */
const ENDS = new MarkerSearch([END])

export class SuffixedReasoningReader extends ReasoningReader {
  /** End mark of the start mark that was read; null before the first one. */
  #end: MarkerSearch | null = null

  protected override readText(): boolean {
    return this.isReasoning ? this.#readReasoning() : this.#readOutside()
  }

  #readReasoning(): boolean {
    const end = this.#end
    if (end === null) return this.#readToAnyEnd()
    const place = end.find(this.input, this.at)
    this.flush(end.found < 0 && this.isEnd ? this.input.length : place)
    if (end.found < 0) return false
    this.at += end.markers[0].length
    this.inside = false
    return true
  }

  #readToAnyEnd(): boolean {
    const place = ENDS.find(this.input, this.at)
    const isFound = ENDS.found >= 0
    this.flush(isFound || !this.isEnd ? place : this.input.length)
    if (!isFound) return false
    const stop = this.#suffixEnd(place + END.length)
    if (stop < 0) return false
    if (this.input[stop] !== '>') {
      this.flush(place + END.length)
      return true
    }
    this.at = stop + 1
    this.inside = false
    return true
  }

  /** End of the suffix that begins here, which may be empty; -1 if it may continue. */
  #suffixEnd(from: number): number {
    const limit = Math.min(this.input.length, from + MAX_SUFFIX)
    let at = from
    while (at < limit && isSuffixCode(this.input.charCodeAt(at), at === from)) at++
    if (at === this.input.length && at < from + MAX_SUFFIX && !this.isEnd) return -1
    // A colon alone is no suffix.
    return at === from + 1 ? from : at
  }

  #readOutside(): boolean {
    const place = OUTSIDE.find(this.input, this.at)
    const { found } = OUTSIDE
    this.flush(found < 0 && this.isEnd ? this.input.length : place)
    if (found < 0) return false
    if (found === 1) {
      this.at += PLAIN_END.length
      return true
    }
    const from = place + START.length
    const at = this.#suffixEnd(from)
    if (at < 0) return false
    if (this.input[at] !== '>') {
      this.flush(from)
      return true
    }
    this.#end = new MarkerSearch([`</think${this.input.slice(from, at)}>`])
    this.at = at + 1
    this.inside = true
    return true
  }
}

/** A colon first, then letters, digits and a few signs. */
function isSuffixCode(code: number, isFirst: boolean): boolean {
  if (isFirst) return code === 0x3a
  if (code >= 0x30 && code <= 0x39) return true
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f || code === 0x2d
}
