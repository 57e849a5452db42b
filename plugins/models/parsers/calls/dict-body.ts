/** Reads arguments written as `{key:value,…}` with strings between marks, which are streamed. @hot */
import { MORE, YES } from '../scan/chunk-reader.ts'
import { FAILED, isSpace, RUNNING } from '../scan/json-scanner.ts'
import type { MarkerSearch } from '../scan/marker-search.ts'
import { quotedValueToJson } from '../scan/quoted-dict.ts'
import type { CallOutput } from './call-output.ts'
import { ObjectBody } from './object-body.ts'

const MAX_KEY = 1_024
const TEXT_RULES = { types: ['string'], untyped: 'string', style: 'compact', isExact: true } as const

export class DictBody extends ObjectBody {
  readonly #mark: MarkerSearch
  #isStarted = false
  #key = ''
  /** Open brackets in a value that is not a string. */
  #depth = 0
  /** Mark of the quoted text that the scan is in: a mark of the format or a JSON quote. */
  #quote: 'none' | 'mark' | 'json' = 'none'
  /** Its last character that is not space. */
  #last = ''

  constructor(out: CallOutput, tool: string, mark: MarkerSearch) {
    super(out, tool)
    this.#mark = mark
  }

  protected override consume(count: number): void {
    this.at += count
    this.left -= count
    if (this.left < 0) this.status = FAILED
  }

  /** False at the limit too, so that it does not depend on chunk boundaries what is read before. */
  protected override skipSpace(): boolean {
    return super.skipSpace() && this.status === RUNNING
  }

  /** A key, or the end of the arguments. */
  protected override readText(): boolean {
    if (!this.skipSpace()) return false
    const { input, at } = this
    if (input[at] === '}') return this.#end()
    const [mark] = this.#mark.markers
    const isQuoted = input.startsWith(mark, at)
    const start = isQuoted ? at + mark.length : at
    const window = input.slice(start, start + MAX_KEY)
    const end = window.indexOf(isQuoted ? mark : ':')
    if (end < 0) return window.length === MAX_KEY && this.fail()
    const colon = isQuoted ? input.indexOf(':', start + end + mark.length) : start + end
    if (colon < 0) return input.length - start >= 2 * MAX_KEY && this.fail()
    this.#key = isQuoted ? window.slice(0, end) : window.slice(0, end).trim()
    if (this.#key === '' || !this.#starts()) return this.fail()
    this.consume(colon + 1 - at)
    return this.enter(this.#startValue)
  }

  #starts(): boolean {
    this.#isStarted ||= this.out.start(this.tool)
    return this.#isStarted
  }

  #startValue(): boolean {
    if (!this.skipSpace()) return false
    const is = this.match(this.#mark.markers[0])
    if (is === MORE) return false
    if (is === YES) {
      this.value.begin(this.head(this.#key), TEXT_RULES)
      return this.enter(this.#readString)
    }
    this.#depth = 0
    this.#quote = 'none'
    this.#last = ':'
    return this.enter(this.#readOther)
  }

  #readString(): boolean {
    const place = this.#mark.find(this.input, this.at)
    const isFound = this.#mark.found >= 0
    this.value.push(this.input.slice(this.at, place))
    this.consume(place - this.at)
    if (!isFound) return false
    this.value.end()
    this.consume(this.#mark.markers[0].length)
    return this.enter(this.#endMember)
  }

  /** Collects a value up to the comma or brace after it; those in quotes and brackets belong to the value. */
  #readOther(): boolean {
    const { input: text } = this
    const [mark] = this.#mark.markers
    let at = this.at
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
        if (this.#depth === 0 && (char === ',' || char === '}')) return this.#endOther(at)
        if (char === '"' && '[{:,'.includes(this.#last)) this.#quote = 'json'
        else if (char === '[' || char === '{') this.#depth++
        else if (char === ']' || char === '}') this.#depth--
      }
      if (!isSpace(char.charCodeAt(0))) this.#last = char
      at++
    }
    this.gather(at)
    return false
  }

  #endOther(at: number): boolean {
    this.gather(at)
    const schema = this.out.options.tools.parameter(this.tool, this.#key)
    const json = quotedValueToJson(this.takeGathered(), this.#mark.markers[0], schema)
    // The text of the value is consumed too, because earlier chunks of it were.
    if (json === null) return this.fail()
    this.out.arguments(this.head(this.#key) + json)
    return this.enter(this.#endMember)
  }

  #endMember(): boolean {
    if (!this.skipSpace()) return false
    if (this.input[this.at] === '}') return this.#end()
    if (this.input[this.at] !== ',') return this.fail()
    this.consume(1)
    return this.enter(this.readText)
  }

  #end(): false {
    if (!this.#starts()) return this.fail()
    this.complete()
    this.consume(1)
    return false
  }
}
