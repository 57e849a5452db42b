/** Readers of calls written as Python. @hot */
import { BracketScan } from '../scan/bracket-scan.ts'
import { MORE, NO } from '../scan/chunk-reader.ts'
import { DONE, isSpace } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { keywordsToJson, literalToJson } from '../scan/python-literal.ts'
import { type CallOutput, MAX_NAME_LENGTH } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { JsonCall } from './json-call.ts'

export interface PythonFormat {
  readonly open: string
  readonly close: string
  /** The marks are optional, but calls are in a list; otherwise they may also follow one another without a list. */
  readonly isBare?: boolean
}

export interface CompiledPython {
  readonly format: PythonFormat
  /** Found: 0 the opening mark, 1 the closing one, 2 a bracket. */
  readonly marks: MarkerSearch
}

export function compilePython(format: PythonFormat): CompiledPython {
  const { open, close, isBare = false } = format
  return { format, marks: new MarkerSearch(isBare ? [open, close, '['] : [open, close]) }
}

/** Reads calls in a list `[f(a=1), g()]` or one per line; a call is passed on when its bracket closes. */
export class PythonCallsReader extends CallReader {
  readonly #format: CompiledPython
  readonly #brackets = new BracketScan()
  #isMarked = false
  #isInList = false
  #name = ''

  constructor(out: CallOutput, format: CompiledPython) {
    super(out)
    this.#format = format
  }

  protected override get isClosing(): boolean {
    return this.step === this.#closes
  }

  protected override readText(): boolean {
    const { marks } = this.#format
    if (!this.textBefore(marks)) return false
    const { found } = marks
    const length = marks.markers[found].length
    if (found === 1) {
      // After calls it belongs to them; elsewhere it is dropped.
      if (this.out.count > 0) this.at += length
      else this.textUntil(this.at + length)
      return true
    }
    this.#isMarked = found === 0
    this.#isInList = !this.#isMarked
    this.begin(length)
    return this.enter(this.#isMarked ? this.#startList : this.#startCall)
  }

  #startList(): boolean {
    if (!this.skipSpace()) return false
    this.#isInList = this.input[this.at] === '['
    if (this.#isInList) this.consume(1)
    else if (this.#format.format.isBare === true) return this.fail()
    return this.enter(this.#startCall)
  }

  #startCall(): boolean {
    return this.skipSpace() && this.enter(this.#readName)
  }

  #readName(): boolean {
    let at = this.at
    const limit = Math.min(this.input.length, at + MAX_NAME_LENGTH - this.gathered.length)
    while (at < limit && isNameCode(this.input.charCodeAt(at))) at++
    this.gathered += this.input.slice(this.at, at)
    this.consume(at - this.at)
    return at < this.input.length && this.enter(this.#endName)
  }

  #endName(): boolean {
    if (!this.skipSpace()) return false
    if (this.input[this.at] !== '(' || this.gathered === '') return this.fail()
    this.consume(1)
    this.#name = this.takeGathered()
    return this.enter(this.#readFirstKey)
  }

  /** Prose in brackets has no `key=` behind its bracket, so that it is not held back for long. */
  #readFirstKey(): boolean {
    let at = this.at
    const { input } = this
    while (at < input.length && isSpace(input.charCodeAt(at))) at++
    const start = at
    while (at < input.length && at - start <= MAX_NAME_LENGTH && isNameCode(input.charCodeAt(at))) at++
    const hasKey = at > start
    while (at < input.length && isSpace(input.charCodeAt(at))) at++
    if (at - this.at > 2 * MAX_NAME_LENGTH) return this.fail()
    if (at === input.length) return false
    if (!hasKey && input[at] !== ')') return this.fail()
    if (hasKey && input[at] !== '=') return this.fail()
    this.#brackets.reset(1)
    return this.enter(this.#readArguments)
  }

  #readArguments(): boolean {
    const is = this.readBrackets(this.#brackets, this.out.options.limits.maxArgumentChars)
    if (is === MORE) return false
    if (is === NO) return this.fail()
    const json = keywordsToJson(this.takeGathered().slice(0, -1))
    if (json === null || !this.out.start(this.#name)) return this.fail()
    this.out.arguments(json)
    this.out.done()
    return this.enter(this.#behindCall)
  }

  #behindCall(): boolean {
    const { format } = this.#format
    if (!this.skipSpace()) return false
    const char = this.input[this.at]
    if (this.#isInList) {
      if (char !== ',' && char !== ']') return this.fail()
      this.consume(1)
      return this.enter(char === ',' ? this.#startCall : this.#closes)
    }
    const is = this.match(format.close)
    if (is === MORE) return false
    if (is < 0) return this.enter(this.#startCall)
    this.out.close()
    return this.enter(this.readText)
  }

  #closes(): boolean {
    if (this.#isMarked) {
      if (!this.skipSpace()) return false
      if (this.match(this.#format.format.close) === MORE) return false
    }
    this.out.close()
    return this.enter(this.readText)
  }
}

/** Letters of any script, digits, underscore, and other characters of tool names. */
function isNameCode(code: number): boolean {
  if (code >= 0x80) return code !== 0xa0 && code !== 0x3000 && code !== 0xfeff
  if (code >= 0x30 && code <= 0x39) return true
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f || code === 0x2e
}

/** Maximum length of buffered text that begins like calls without the mark, characters. */
const MAX_BARE = 65_536
/** Space between the first two brackets. */
const MAX_SPACE = 256

/** Reads calls written as a Python list of dicts with a name and arguments; the list is buffered. */
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
