/**
 * Reasoning in a channel of `<|open|>think<|sep|>`; the answer's own tags go, the channel of tools stays. @hot
 */
import { tagName } from '../calls/tag-attributes.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader, type ReasoningSink, type ReasoningStart } from './reasoning-reader.ts'

const MAX_HEAD = 64
const TAGS = new MarkerSearch(['<|open|>', '<|close|>'])
const SEPARATOR = '<|sep|>'
const OPENER = 0

export class ChannelReasoningReader extends ReasoningReader {
  /** The prompt opened the channel, perhaps not the model. */
  #isAssumed: boolean
  readonly #holds: boolean
  /** Reasoning that may turn out to be the answer. */
  #held = ''
  #isInTools = false

  constructor(sink: ReasoningSink, start: ReasoningStart) {
    super(sink, start.isInside ?? false)
    this.#isAssumed = start.isInside ?? false
    this.#holds = start.isWhole && this.#isAssumed
  }

  override end(): void {
    super.end()
    this.#release()
  }

  protected override step(): boolean {
    if (this.#isInTools) {
      this.flush(this.input.length)
      return false
    }
    const place = TAGS.find(this.input, this.at)
    const { found } = TAGS
    this.#hand(found < 0 && this.isEnd ? this.input.length : place)
    if (found < 0) return false
    const headAt = place + TAGS.markers[found].length
    // Looked for no further than a head may reach, so that a text full of openers is read once.
    const limit = headAt + MAX_HEAD + SEPARATOR.length
    const window = this.input.slice(headAt, limit)
    const length = window.indexOf(SEPARATOR)
    if (length < 0 && this.input.length < limit && !this.isEnd) return false
    if (length >= 0 && this.#takes(tagName(window.slice(0, length)), found === OPENER)) {
      if (!this.#isInTools) this.at = headAt + length + SEPARATOR.length
      return true
    }
    this.#hand(headAt)
    return true
  }

  /** @returns false when the tag is text like any other */
  #takes(tag: string, isOpening: boolean): boolean {
    if (this.isInside) return this.#takesInside(tag, isOpening)
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
      else this.#leave()
      return true
    }
    if (isOpening && (tag === 'response' || tag === 'tools')) {
      this.#leave()
      this.#isInTools = tag === 'tools'
      return true
    }
    if (isOpening || !this.#isAssumed || (tag !== 'response' && tag !== 'message')) return false
    // Nobody reasoned: the whole was the answer.
    const answer = this.#held
    this.#held = ''
    this.inside = false
    if (answer !== '') this.sink.text(answer)
    return true
  }

  #leave(): void {
    this.#release()
    this.inside = false
  }

  #hand(place: number): void {
    if (!this.#holds || !this.isInside) {
      this.flush(place)
      return
    }
    this.#held += this.input.slice(this.at, place)
    this.at = place
  }

  #release(): void {
    const held = this.#held
    this.#held = ''
    if (held !== '') this.sink.reasoning(held)
  }
}
