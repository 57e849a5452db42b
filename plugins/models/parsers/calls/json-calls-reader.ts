/** Reads calls that are JSON objects, alone or in an array, between marks or anywhere in the text. @hot */

import { MORE, NO } from '../scan/chunk-reader.ts'
import { DONE, FAILED, JsonScanner, RUNNING } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { type CallOutput, MAX_NAME_LENGTH } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { JsonArguments } from './json-arguments.ts'
import { JsonCall, type JsonCallRules } from './json-call.ts'

export interface JsonCallsFormat {
  readonly call: JsonCallRules
  /** Mark before the JSON; only bare formats may have none. */
  readonly open?: string
  /** Mark behind it. */
  readonly close?: string
  /** Marks that are dropped anywhere in the text. */
  readonly wrappers?: readonly string[]
  /** Default: either. */
  readonly shape?: 'object' | 'array'
  /** Where JSON without a mark may be a call: anywhere, or at the beginning of the text. Text after the first value is not searched for calls. */
  readonly bare?: 'anywhere' | 'start'
  /** Separator of objects outside an array; such a list ends with the text. */
  readonly separator?: string
  /** A mark between a plain name and its JSON, as in `[TOOL_CALLS]name[ARGS]{}`. */
  readonly argumentsMark?: string
}

/** A compiled format. */
export interface CompiledJsonCalls {
  readonly format: JsonCallsFormat
  /** Found: 0 the mark before calls, others are wrappers; of formats with bare calls anywhere their first brackets. */
  readonly marks: MarkerSearch
  readonly argumentsMark: MarkerSearch | null
}

export function compileJsonCalls(format: JsonCallsFormat): CompiledJsonCalls {
  const { bare, open = '', wrappers = [], argumentsMark } = format
  return {
    format,
    marks: new MarkerSearch(bare === 'anywhere' ? ['{', '['] : [open, ...wrappers]),
    argumentsMark: argumentsMark === undefined ? null : new MarkerSearch([argumentsMark]),
  }
}

/** Maximum length of buffered prose that begins like a call, characters. */
const MAX_BARE = 65_536
/** An object behind a mark. */
const MAX_MARKED = 8 * 1024 * 1024

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c

export class JsonCallsReader extends CallReader {
  readonly #format: CompiledJsonCalls
  readonly #call: JsonCall
  #isArray = false
  #isBare = false
  #items = 0
  #arguments: JsonArguments | null = null
  #plain: JsonScanner | null = null

  constructor(out: CallOutput, format: CompiledJsonCalls) {
    super(out)
    this.#format = format
    this.#call = new JsonCall(out, format.format.call)
    if (format.format.bare === 'start') this.enter(this.#readStart)
  }

  protected override get isClosing(): boolean {
    return this.step === this.#closes
  }

  protected override fail(): boolean {
    const isAnswer = this.#isBare && this.#items === 0 && !this.out.isInCall
    if (!isAnswer || this.#format.format.bare !== 'anywhere') return super.fail()
    // JSON of an answer is skipped as a whole, so that no object in it is taken for a call.
    const { rawText } = this.out
    this.out.fail()
    this.gathered = ''
    this.#plain ??= new JsonScanner('raw', 0)
    this.#plain.reset('raw', Number.MAX_SAFE_INTEGER)
    this.#plain.feed(rawText, 0, rawText.length)
    this.#plain.take()
    return this.enter(this.#plain.status === RUNNING ? this.#readPlain : this.readText)
  }

  #readPlain(): boolean {
    const plain = this.#plain
    if (plain === null) return this.enter(this.readText)
    const stop = plain.feed(this.input, this.at, this.input.length)
    plain.take()
    this.textUntil(stop)
    return plain.status !== RUNNING && this.enter(this.readText)
  }

  /** Behind the only value that may be a call. */
  #readRest(): boolean {
    this.textUntil(this.input.length)
    return false
  }

  #readStart(): boolean {
    this.out.begin()
    if (!this.skipSpace()) return false
    const code = this.input.charCodeAt(this.at)
    this.#isBare = true
    this.#items = 0
    if (code === OPEN_BRACE) return this.#startObject()
    return this.fail()
  }

  protected override readText(): boolean {
    const { marks, format } = this.#format
    if (!this.textBefore(marks)) return false
    const { found } = marks
    this.#isBare = format.bare === 'anywhere'
    this.#items = 0
    if (this.#isBare) {
      this.begin(0)
      return this.enter(this.#startValue)
    }
    if (found > 0) {
      this.at += marks.markers[found].length
      return true
    }
    this.begin(marks.markers[0].length)
    return this.enter(this.#startValue)
  }

  #startValue(): boolean {
    if (!this.skipSpace()) return false
    const code = this.input.charCodeAt(this.at)
    const { shape, argumentsMark } = this.#format.format
    this.#isArray = false
    if (code === OPEN_BRACKET && shape !== 'object') {
      this.#isArray = true
      this.consume(1)
      return this.enter(this.#startItem)
    }
    if (code === OPEN_BRACE && shape !== 'array') return this.#startObject()
    if (argumentsMark !== undefined && code !== OPEN_BRACKET && code !== OPEN_BRACE)
      return this.enter(this.#readName)
    return this.fail()
  }

  #startItem(): boolean {
    if (!this.skipSpace()) return false
    const code = this.input.charCodeAt(this.at)
    return code === OPEN_BRACE ? this.#startObject() : this.fail()
  }

  #startObject(): boolean {
    this.#call.reset(this.#isBare ? MAX_BARE : MAX_MARKED)
    return this.enter(this.#readObject)
  }

  #readObject(): boolean {
    const stop = this.#call.feed(this.input, this.at)
    this.consume(stop - this.at)
    if (this.#call.status === RUNNING) return false
    if (this.#call.status === FAILED) return this.fail()
    this.out.done()
    this.#items++
    return this.enter(this.#isArray ? this.#behindItem : this.#behindObject)
  }

  #behindItem(): boolean {
    if (!this.skipSpace()) return false
    const code = this.input.charCodeAt(this.at)
    if (code !== COMMA && code !== CLOSE_BRACKET) return this.fail()
    this.consume(1)
    return this.enter(code === COMMA ? this.#startItem : this.#closes)
  }

  /** A list without brackets ends with the text; anything else after it shows that it was an answer. */
  #behindObject(): boolean {
    const { separator } = this.#format.format
    if (separator === undefined) return this.enter(this.#closes)
    if (!this.skipSpace()) return this.isEnd && this.#ends()
    if (!this.input.startsWith(separator, this.at)) return this.fail()
    this.consume(separator.length)
    return this.enter(this.#startItem)
  }

  #closes(): boolean {
    const { close } = this.#format.format
    if (close === undefined) return this.#ends()
    if (!this.skipSpace()) return false
    return this.match(close) === MORE ? false : this.#ends()
  }

  #ends(): boolean {
    this.out.close()
    return this.enter(this.#format.format.bare === undefined ? this.readText : this.#readRest)
  }

  #readName(): boolean {
    const { argumentsMark } = this.#format
    if (argumentsMark === null) return this.fail()
    const is = this.readUntil(argumentsMark, MAX_NAME_LENGTH)
    if (is === MORE) return false
    const name = plainName(this.takeGathered())
    if (is === NO || name === '') return this.fail()
    this.#arguments = new JsonArguments(this.out, name, { style: 'compact', other: 'refuse' })
    return this.enter(this.#readArguments)
  }

  #readArguments(): boolean {
    const json = this.#arguments
    if (json === null) return this.fail()
    this.consume(json.feed(this.input, this.at, this.isEnd) - this.at)
    if (json.status === RUNNING) return false
    if (json.status !== DONE) return this.fail()
    this.out.done()
    this.out.close()
    return this.enter(this.readText)
  }
}

/** Some versions put an id between name and arguments. */
function plainName(head: string): string {
  const id = head.indexOf('[CALL_ID]')
  return (id < 0 ? head : head.slice(0, id)).trim()
}
