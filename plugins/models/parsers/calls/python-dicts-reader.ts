/** Reads calls written as a Python list of dicts with a name and arguments; the list is buffered. @hot */
import { BracketScan } from '../scan/bracket-scan.ts'
import { MORE, NO } from '../scan/chunk-reader.ts'
import { DONE, isSpace } from '../scan/json-scanner.ts'
import type { MarkerSearch } from '../scan/marker-search.ts'
import { literalToJson } from '../scan/python-literal.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { JsonCall } from './json-call.ts'

/** Maximum length of buffered text that begins like calls without the mark, characters. */
const MAX_BARE = 65_536
/** Space between the first two brackets. */
const MAX_SPACE = 256

export class PythonDictsReader extends CallReader {
  readonly #mark: MarkerSearch
  readonly #call: JsonCall
  readonly #brackets = new BracketScan()
  #isBare = true

  constructor(out: CallOutput, mark: MarkerSearch) {
    super(out)
    this.enter(this.#readStart)
    this.#mark = mark
    this.#call = new JsonCall(out, { nameKeys: ['name'], argumentKeys: ['arguments'] })
  }

  #readStart(): boolean {
    this.out.begin()
    if (!this.skipSpace()) return false
    const char = this.input[this.at]
    return char === '[' || char === '{' ? this.enter(this.#startValue) : this.fail()
  }

  protected override readText(): boolean {
    const mark = this.#mark
    if (!this.textBefore(mark)) return false
    // The mark is always removed.
    this.at += mark.markers[0].length
    this.out.begin()
    this.#isBare = false
    return this.enter(this.#startValue)
  }

  #startValue(): boolean {
    if (!this.skipSpace()) return false
    const char = this.input[this.at]
    if (char !== '[' && char !== '{') return this.fail()
    this.#brackets.reset(0)
    return this.enter(char === '[' ? this.#readSecond : this.#readValue)
  }

  /** A list that does not begin with a dict is prose. */
  #readSecond(): boolean {
    let at = this.at + 1
    while (at < this.input.length && isSpace(this.input.charCodeAt(at))) at++
    if (at - this.at > MAX_SPACE) return this.fail()
    if (at >= this.input.length) return false
    if (this.input[at] !== '{') {
      this.consume(1)
      return this.fail()
    }
    return this.enter(this.#readValue)
  }

  #readValue(): boolean {
    const limit = this.#isBare ? MAX_BARE : this.out.options.limits.maxArgumentChars
    const is = this.readBrackets(this.#brackets, limit)
    if (is === MORE) return false
    if (is === NO) return this.fail()
    const json = literalToJson(this.takeGathered())
    if (json === null || !this.#readCalls(json)) return this.fail()
    this.out.close()
    return this.enter(this.readText)
  }

  #readCalls(json: string): boolean {
    let at = json[0] === '[' ? 1 : 0
    while (at < json.length && json[at] === '{') {
      this.#call.reset(json.length)
      at = this.#call.feed(json, at)
      if (this.#call.status !== DONE) return false
      this.out.done()
      at++
    }
    return at >= json.length
  }
}
