/**
 * Reasoning in a channel of `<|open|>think<|sep|>`; the tags of the answer are removed, the channel of tools is passed on. @hot
 */
import { tagName } from '../calls/tag-attributes.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader, type ReasoningSink } from './reasoning-reader.ts'

const MAX_HEAD = 64
const TAGS = new MarkerSearch(['<|open|>', '<|close|>'])
const SEPARATOR = '<|sep|>'
const OPENER = 0

export class ChannelReasoningReader extends ReasoningReader {
  /** The prompt may have opened the channel. */
  #isAssumed: boolean
  #isInTools = false

  constructor(sink: ReasoningSink, isInside: boolean) {
    super(sink, isInside)
    this.#isAssumed = isInside
  }

  protected override readText(): boolean {
    if (this.#isInTools) {
      this.flush(this.input.length)
      return false
    }
    const place = TAGS.find(this.input, this.at)
    const { found } = TAGS
    this.flush(found < 0 && this.isEnd ? this.input.length : place)
    if (found < 0) return false
    const headAt = place + TAGS.markers[found].length
    // The search is limited to the length of a head, so that a text full of openers takes linear time.
    const limit = headAt + MAX_HEAD + SEPARATOR.length
    const window = this.input.slice(headAt, limit)
    const length = window.indexOf(SEPARATOR)
    if (length < 0 && this.input.length < limit && !this.isEnd) return false
    if (length >= 0 && this.#takes(tagName(window.slice(0, length)), found === OPENER)) {
      if (!this.#isInTools) this.at = headAt + length + SEPARATOR.length
      return true
    }
    this.flush(headAt)
    return true
  }

  /** @returns false if the tag is text */
  #takes(tag: string, isOpening: boolean): boolean {
    if (this.isReasoning) return this.#takesInside(tag, isOpening)
    if (tag === 'tools' && isOpening) this.#isInTools = true
    else if (tag === 'think') {
      this.inside = isOpening
      if (isOpening) this.#isAssumed = false
    } else if (tag !== 'response' && tag !== 'message') return false
    return true
  }

  #takesInside(tag: string, isOpening: boolean): boolean {
    if (tag === 'think') {
      if (isOpening) this.#isAssumed = false
      else this.inside = false
      return true
    }
    if (isOpening && (tag === 'response' || tag === 'tools')) {
      this.inside = false
      this.#isInTools = tag === 'tools'
      return true
    }
    if (isOpening || !this.#isAssumed || (tag !== 'response' && tag !== 'message')) return false
    // The model did not reason: the rest is the answer.
    this.inside = false
    return true
  }
}
