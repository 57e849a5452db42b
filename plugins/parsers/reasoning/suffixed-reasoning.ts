/** Reasoning between `<think>` marks that may end in a suffix of their own. @hot @source parsers facts of November 2026, 1 */
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader } from './reasoning-reader.ts'

const MAX_SUFFIX = 64
const START = '<think'
const PLAIN_END = '</think>'
const OUTSIDE = new MarkerSearch([START, PLAIN_END])

export class SuffixedReasoningReader extends ReasoningReader {
  #end = new MarkerSearch([PLAIN_END])

  protected override step(): boolean {
    return this.isInside ? this.#readReasoning() : this.#readText()
  }

  #readReasoning(): boolean {
    const end = this.#end
    const place = end.find(this.input, this.at)
    this.flush(end.found < 0 && this.isEnd ? this.input.length : place)
    if (end.found < 0) return false
    this.at += end.markers[0].length
    this.inside = false
    return true
  }

  #readText(): boolean {
    const place = OUTSIDE.find(this.input, this.at)
    const { found } = OUTSIDE
    this.flush(found < 0 && this.isEnd ? this.input.length : place)
    if (found < 0) return false
    if (found === 1) {
      this.at += PLAIN_END.length
      return true
    }
    const from = place + START.length
    const limit = Math.min(this.input.length, from + MAX_SUFFIX)
    let at = from
    while (at < limit && isSuffixCode(this.input.charCodeAt(at), at === from)) at++
    if (at === this.input.length && at < from + MAX_SUFFIX && !this.isEnd) return false
    if (this.input[at] !== '>' || at === from + 1) {
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
