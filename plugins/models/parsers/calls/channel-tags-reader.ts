/**
 * Reads calls in channels of the form `<|open|>tag attributes<|sep|> … <|close|>tag<|sep|>`. @hot
 */

import { MORE, NO } from '../scan/chunk-reader.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ANY_JSON } from '../scan/typed-value.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { LiteralValue } from './literal-value.ts'
import { attribute, tagName } from './tag-attributes.ts'

const OPENER = 0
const TAGS = new MarkerSearch(['<|open|>', '<|close|>', '<|end_of_msg|>'])
const SEPARATOR = new MarkerSearch(['<|sep|>'])
const CLOSE = new MarkerSearch(['<|close|>'])
const MAX_HEAD = 2_048
const STRING: readonly string[] = ['string']

export class ChannelTagsReader extends CallReader {
  #isOpening = false
  #isInTools = false
  #name = ''
  readonly #value: LiteralValue
  #arguments = 0
  #argumentChars = 0

  constructor(out: CallOutput) {
    super(out)
    this.#value = new LiteralValue(out)
  }

  protected override readText(): boolean {
    if (!this.textBefore(TAGS)) return false
    const { found } = TAGS
    if (found === 2) {
      this.at += TAGS.markers[found].length
      return true
    }
    this.#isOpening = found === OPENER
    this.begin(TAGS.markers[found].length)
    return this.enter(this.#readHead)
  }

  /** Tags of the answer are removed; unknown tags are text. */
  #readHead(): boolean {
    const is = this.readUntil(SEPARATOR, MAX_HEAD)
    if (is === MORE) return false
    if (is === NO) return this.fail()
    const header = this.takeGathered()
    const tag = tagName(header)
    if (tag === 'response' || tag === 'message' || tag === 'tools') {
      if (tag === 'tools') this.#isInTools = this.#isOpening
      this.out.discard()
      return this.enter(this.readText)
    }
    if (!this.#isInTools || !this.#isOpening || tag !== 'call') return this.fail()
    const name = attribute(header, 'tool')
    if (name === null || name === '') return this.fail()
    this.#name = name
    this.#arguments = 0
    this.#argumentChars = 0
    return this.enter(this.#readCall)
  }

  /** Another argument or the end of the call, after optional space. */
  #readCall(): boolean {
    if (!this.skipSpace()) return false
    const opens = this.match(TAGS.markers[0])
    if (opens > 0) return this.enter(this.#readArgumentHead)
    const closes = this.match(TAGS.markers[1])
    if (closes > 0) return this.enter(this.#endCall)
    return opens === MORE || closes === MORE ? false : this.fail()
  }

  #readArgumentHead(): boolean {
    const is = this.readUntil(SEPARATOR, MAX_HEAD)
    if (is === MORE) return false
    const header = this.takeGathered()
    const key = attribute(header, 'key')
    if (is === NO || tagName(header) !== 'argument' || key === null) return this.fail()
    if (this.#arguments === 0 && !this.out.start(this.#name)) return this.fail()
    const isString = (attribute(header, 'type') ?? 'string') === 'string'
    this.#value.begin(`${this.#arguments++ === 0 ? '{' : ','}${JSON.stringify(key)}:`, {
      types: isString ? STRING : ANY_JSON,
      untyped: 'string',
      style: 'compact',
      isExact: true,
    })
    return this.enter(this.#readValue)
  }

  #readValue(): boolean {
    const place = CLOSE.find(this.input, this.at)
    const isFound = CLOSE.found >= 0
    const stop = Math.min(place, this.at + this.out.options.limits.maxArgumentChars - this.#argumentChars)
    this.#value.push(this.input.slice(this.at, stop))
    this.#argumentChars += stop - this.at
    this.consume(stop - this.at)
    if (stop < place) return this.fail()
    if (isFound) {
      this.consume(CLOSE.markers[0].length)
      return this.enter(this.#endValue)
    }
    return false
  }

  #endValue(): boolean {
    const is = this.readUntil(SEPARATOR, MAX_HEAD)
    if (is === MORE) return false
    const tag = tagName(this.takeGathered())
    if (is === NO || tag !== 'argument') return this.fail()
    this.#value.end()
    return this.enter(this.#readCall)
  }

  #endCall(): boolean {
    const is = this.readUntil(SEPARATOR, MAX_HEAD)
    if (is === MORE) return false
    const tag = tagName(this.takeGathered())
    if (is === NO || tag !== 'call') return this.fail()
    if (this.#arguments === 0 && !this.out.start(this.#name)) return this.fail()
    this.out.arguments(this.#arguments === 0 ? '{}' : '}')
    this.out.done()
    this.out.close()
    return this.enter(this.readText)
  }
}
