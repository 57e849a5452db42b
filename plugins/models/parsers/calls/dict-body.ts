/** Reads arguments written as `{key:value,…}` with strings between marks, which are streamed. @hot */
import { DONE, FAILED, isSpace, RUNNING } from '../scan/json-scanner.ts'
import type { MarkerSearch } from '../scan/marker-search.ts'
import { quotedValueToJson } from '../scan/quoted-dict.ts'
import type { CallOutput } from './call-output.ts'
import type { BodyReader } from './headed-calls-reader.ts'
import { LiteralValue } from './literal-value.ts'

const MAX_KEY = 1_024
const TEXT_RULES = { types: ['string'], untyped: 'string', style: 'compact', isExact: true } as const

const KEY = 0
const VALUE_START = 1
const STRING = 2
const OTHER = 3
const BEHIND_VALUE = 4

export class DictBody implements BodyReader {
  status = RUNNING
  readonly #out: CallOutput
  readonly #mark: MarkerSearch
  readonly #value: LiteralValue
  readonly #tool: string
  #state = KEY
  #key = ''
  #members = 0
  /** Text of a value that is not a string. */
  #gathered = ''
  /** Open brackets in it. */
  #depth = 0
  /** Mark of the quoted text that the scan is in: a mark of the format or a JSON quote. */
  #quote: 'none' | 'mark' | 'json' = 'none'
  /** Its last character that is not space. */
  #last = ''
  #left: number

  constructor(out: CallOutput, tool: string, mark: MarkerSearch) {
    this.#out = out
    this.#tool = tool
    this.#mark = mark
    this.#value = new LiteralValue(out)
    this.#left = out.options.limits.maxArgumentChars
  }

  feed(text: string, from: number): number {
    let at = from
    for (;;) {
      const next = this.status === RUNNING ? this.#step(text, at) : -1
      if (next < 0) return at
      this.#left -= next - at
      at = next
      if (this.#left < 0) this.status = FAILED
    }
  }

  /** @returns the end of what was read; -1 if more text is needed or the arguments are over */
  #step(text: string, from: number): number {
    let at = from
    if (this.#state === STRING) return this.#readString(text, at)
    if (this.#state === OTHER) return this.#readOther(text, at)
    while (at < text.length && isSpace(text.charCodeAt(at))) at++
    // A separate step, so that the remaining text of failed arguments does not depend on chunk boundaries.
    if (at > from) return at
    if (at === text.length) return -1
    if (this.#state === KEY) return this.#readKey(text, at)
    if (this.#state === VALUE_START) return this.#startValue(text, at)
    return this.#endMember(text, at)
  }

  #readKey(text: string, at: number): number {
    if (text[at] === '}') return this.#end(at)
    const [mark] = this.#mark.markers
    const isQuoted = text.startsWith(mark, at)
    const start = isQuoted ? at + mark.length : at
    const window = text.slice(start, start + MAX_KEY)
    const end = window.indexOf(isQuoted ? mark : ':')
    if (end < 0) return this.#waits(window.length < MAX_KEY)
    const colon = isQuoted ? text.indexOf(':', start + end + mark.length) : start + end
    if (colon < 0) return this.#waits(text.length - start < 2 * MAX_KEY)
    const key = isQuoted ? window.slice(0, end) : window.slice(0, end).trim()
    const isCertain = key !== '' && (this.#members > 0 || this.#out.start(this.#tool))
    if (!isCertain) return this.#waits(false)
    this.#key = key
    this.#state = VALUE_START
    return colon + 1
  }

  #startValue(text: string, at: number): number {
    const [mark] = this.#mark.markers
    if (text.startsWith(mark, at)) {
      this.#value.begin(this.#head(), TEXT_RULES)
      this.#state = STRING
      return at + mark.length
    }
    if (mark.startsWith(text.slice(at, at + mark.length))) return -1
    this.#gathered = ''
    this.#depth = 0
    this.#quote = 'none'
    this.#last = ':'
    this.#state = OTHER
    return at
  }

  #head(): string {
    return `${this.#members++ === 0 ? '{' : ','}${JSON.stringify(this.#key)}:`
  }

  #readString(text: string, at: number): number {
    const place = this.#mark.find(text, at)
    const isFound = this.#mark.found >= 0
    this.#value.push(text.slice(at, place))
    if (!isFound) return place > at ? place : -1
    this.#value.end()
    this.#state = BEHIND_VALUE
    return place + this.#mark.markers[0].length
  }

  /** Collects a value up to the comma or brace after it; those in quotes and brackets belong to the value. */
  #readOther(text: string, from: number): number {
    const [mark] = this.#mark.markers
    let at = from
    while (at < text.length) {
      const char = text[at]
      if (this.#quote !== 'json' && char === mark[0]) {
        const part = text.slice(at, at + mark.length)
        if (part === mark) {
          this.#quote = this.#quote === 'none' ? 'mark' : 'none'
          at += mark.length
          this.#last = '"'
          continue
        }
        if (mark.startsWith(part)) break
      }
      if (this.#quote === 'json' && char === '\\') {
        if (at + 1 === text.length) break
        at += 2
        continue
      }
      if (this.#quote === 'json') {
        if (char === '"') this.#quote = 'none'
      } else if (this.#quote === 'none') {
        if (this.#depth === 0 && (char === ',' || char === '}')) return this.#endOther(text, from, at)
        if (char === '"' && '[{:,'.includes(this.#last)) this.#quote = 'json'
        else if (char === '[' || char === '{') this.#depth++
        else if (char === ']' || char === '}') this.#depth--
      }
      if (!isSpace(char.charCodeAt(0))) this.#last = char
      at++
    }
    this.#gathered += text.slice(from, at)
    return at > from ? at : -1
  }

  #endOther(text: string, from: number, at: number): number {
    const schema = this.#out.options.tools.parameter(this.#tool, this.#key)
    const value = this.#gathered + text.slice(from, at)
    const json = quotedValueToJson(value, this.#mark.markers[0], schema)
    if (json === null) {
      // The text of the value is consumed too, because earlier chunks of it were.
      this.status = FAILED
      return at
    }
    this.#out.arguments(this.#head() + json)
    this.#state = BEHIND_VALUE
    return at
  }

  #endMember(text: string, at: number): number {
    if (text[at] === '}') return this.#end(at)
    if (text[at] !== ',') return this.#waits(false)
    this.#state = KEY
    return at + 1
  }

  #end(at: number): number {
    if (this.#members === 0 && !this.#out.start(this.#tool)) return this.#waits(false)
    this.#out.arguments(this.#members === 0 ? '{}' : '}')
    this.status = DONE
    return at + 1
  }

  #waits(mayBeRead: boolean): -1 {
    if (!mayBeRead) this.status = FAILED
    return -1
  }
}
