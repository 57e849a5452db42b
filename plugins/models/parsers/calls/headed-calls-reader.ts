/** Reads calls with a head that contains the name, followed by a JSON value or by pairs of key and value. @hot */
import { DONE, FAILED, isSpace, RUNNING } from '../scan/json-scanner.ts'
import { quote } from '../scan/json-text.ts'
import { typesOf } from '../scan/tool-types.ts'
import type { BodyReader } from './body-reader.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader, MORE, NO, TEXT, YES } from './call-reader.ts'
import type { CompiledHeads, CompiledPair } from './headed-format.ts'
import { JsonArguments } from './json-arguments.ts'
import { LiteralValue } from './literal-value.ts'

/** Maximum length of keys and of text between pairs. */
const MAX_HEAD = 1_024
const MAX_SUFFIX = 64
/** Maximum length of the header of a pair that begins within a value. */
const MAX_NEXT_KEY = 256

const SECTION_START = 1
const OPENING = 2
const NAME = 3
const BODY_START = 4
const JSON_BODY = 5
const KEY = 6
const BEFORE_VALUE = 7
const VALUE = 8
const BEHIND_PAIR = 9
const CLOSING = 10
const SUFFIX = 11
const OWN_BODY = 12
const BEHIND_CALL = 13
const VALUE_START = 14
const VERBATIM = 15
const BEHIND_VERBATIM = 16

export class HeadedCallsReader extends CallReader {
  #format: CompiledHeads
  #isInSection = false
  /** Calls passed on before the section began. */
  #callsBefore = 0
  #sequenceAt = 0
  #name = ''
  /** Keys of the call so far. */
  readonly #keys = new Set<string>()
  readonly #value: LiteralValue
  #argumentChars = 0
  #json: JsonArguments | null = null
  #body: BodyReader | null = null

  constructor(out: CallOutput, format: CompiledHeads) {
    super(out)
    this.#format = format
    this.#value = new LiteralValue(out)
  }

  protected override get isClosing(): boolean {
    return this.state === CLOSING
  }

  protected override step(): boolean {
    switch (this.state) {
      case TEXT:
        return this.#readText()
      case SECTION_START:
        return this.#startSection()
      case OPENING:
        return this.#open()
      case NAME:
        return this.#readName()
      case BODY_START:
        return this.#startBody()
      case JSON_BODY:
        return this.#readJson()
      case KEY:
        return this.#readKey()
      case BEFORE_VALUE:
        return this.#startValue()
      case VALUE_START:
        return this.#findVerbatim()
      case VERBATIM:
        return this.#readVerbatim()
      case BEHIND_VERBATIM:
        return this.#skipBehindVerbatim()
      case VALUE:
        return this.#readValue()
      case BEHIND_PAIR:
        return this.#afterPair()
      case SUFFIX:
        return this.#readSuffix()
      case OWN_BODY:
        return this.#readOwnBody()
      case BEHIND_CALL:
        return this.#skipGap()
      default:
        return this.#close()
    }
  }

  #readText(): boolean {
    const { outside, inside, section } = this.#format
    const search = this.#isInSection ? inside : outside
    const place = search.find(this.input, this.at)
    if (search.found < 0) {
      const isCut = this.#isInSection && this.out.count > this.#callsBefore
      this.textUntil(this.isEnd && !isCut ? this.input.length : place)
      if (this.isEnd) this.at = this.input.length
      return false
    }
    const { found } = search
    this.textUntil(place)
    const length = search.markers[found].length
    const isCall = found === 0 && (this.#isInSection || section === null || this.#format.isSectionOptional)
    if (isCall) {
      this.begin(length)
      this.#sequenceAt = 1
      return this.enter(OPENING)
    }
    if (this.#isInSection) {
      this.#isInSection = false
      if (this.out.count > this.#callsBefore) this.at += length
      else this.textUntil(place + length)
      return true
    }
    this.#isInSection = true
    this.#callsBefore = this.out.count
    this.begin(length)
    return this.enter(this.#format.suffix === null ? SECTION_START : SUFFIX)
  }

  /** All marks of this section have the suffix of the first one. */
  #readSuffix(): boolean {
    const { suffix } = this.#format
    if (suffix === null) return this.fail()
    const is = this.readUntil(suffix.end, MAX_SUFFIX)
    if (is === MORE) return false
    const format = is === YES ? suffix.toFormat(this.takeGathered()) : null
    if (format === null) {
      this.#isInSection = false
      return this.fail()
    }
    this.#format = format
    return this.enter(SECTION_START)
  }

  #startSection(): boolean {
    if (!this.skipSpace()) return false
    const { open, section } = this.#format
    const opens = this.match(open[0])
    if (opens === YES) {
      this.#sequenceAt = 1
      return this.enter(OPENING)
    }
    const closes = (section?.[1] ?? []).map((mark) => this.match(mark))
    if (closes.includes(YES)) this.#isInSection = false
    else if (opens === MORE || closes.includes(MORE)) return false
    return this.fail()
  }

  #open(): boolean {
    const { open } = this.#format
    if (this.#sequenceAt === open.length) return this.enter(NAME)
    if (!this.skipSpace()) return false
    const is = this.match(open[this.#sequenceAt])
    if (is === MORE) return false
    if (is === NO) return this.fail()
    this.#sequenceAt++
    return true
  }

  #readName(): boolean {
    const { nameEnd, toName } = this.#format
    if (nameEnd === null) {
      const is = this.#readBareName()
      if (is === MORE) return false
      if (is === NO) return this.fail()
    } else {
      const is = this.readUntil(nameEnd, MAX_HEAD)
      if (is === MORE) return false
      if (is === NO) return this.fail()
    }
    const name = toName(this.takeGathered())
    if (name === null || name === '') return this.fail()
    this.#name = name
    this.#keys.clear()
    this.#argumentChars = 0
    return this.enter(BODY_START)
  }

  /** A name without an end mark ends with its line, with its word, or before a tag. */
  #readBareName(): number {
    const { nameStop } = this.#format
    if (this.gathered === '' && nameStop !== 'line' && !this.skipSpace()) return MORE
    let at = this.at
    const limit = Math.min(this.input.length, at + MAX_HEAD - this.gathered.length)
    let is = MORE
    while (at < limit) {
      const code = this.input.charCodeAt(at)
      if (code === 0x3c) {
        is = nameStop === 'line' ? NO : YES
        break
      }
      if (nameStop === 'line' ? code === 0x0a : nameStop === 'word' && isSpace(code)) {
        is = YES
        break
      }
      at++
    }
    this.gathered += this.input.slice(this.at, at)
    this.consume(at - this.at)
    if (is === MORE && this.gathered.length >= MAX_HEAD) return NO
    return is
  }

  #readOwnBody(): boolean {
    const body = this.#body
    if (body === null) return this.fail()
    this.consume(body.feed(this.input, this.at) - this.at)
    if (body.status === RUNNING) return false
    if (body.status === FAILED) return this.fail()
    this.out.done()
    this.#sequenceAt = 0
    return this.enter(CLOSING)
  }

  #startBody(): boolean {
    if (this.#format.openBody !== null) {
      this.#body ??= this.#format.openBody(this.out)
      this.#body.reset(this.#name)
      return this.enter(OWN_BODY)
    }
    if (!this.skipSpace()) return false
    const { body, pair, close, inner } = this.#format
    if (body === 'json' || (body === 'either' && this.input.charCodeAt(this.at) === 0x7b)) {
      this.#json ??= new JsonArguments(this.out, this.#format.json)
      this.#json.reset(this.#name)
      return this.enter(JSON_BODY)
    }
    if (pair === null) return this.fail()
    const opens = this.match(pair.open)
    if (opens === YES) return this.out.start(this.#name) ? this.enter(KEY) : this.fail()
    const ends = this.match(close[0])
    if (ends === YES) return this.#endEmpty(1)
    const endsInner = inner === null ? NO : this.match(inner)
    if (endsInner === YES) return this.#endEmpty(0)
    return opens === MORE || ends === MORE || endsInner === MORE ? false : this.fail()
  }

  #endEmpty(closed: number): boolean {
    return this.out.start(this.#name) ? this.#endPairs(closed) : this.fail()
  }

  #endPairs(closed: number): boolean {
    this.out.arguments(this.#keys.size === 0 ? '{}' : '}')
    this.out.done()
    this.#sequenceAt = closed
    return this.enter(CLOSING)
  }

  #readJson(): boolean {
    const json = this.#json
    if (json === null) return this.fail()
    const stop = json.feed(this.input, this.at)
    this.consume(stop - this.at)
    if (json.status === RUNNING && this.isEnd) json.finish()
    if (json.status === RUNNING) return false
    if (json.status === FAILED) return this.fail()
    if (json.status === DONE) this.out.done()
    this.#sequenceAt = 0
    return this.enter(CLOSING)
  }

  #readKey(): boolean {
    const { pair } = this.#format
    if (pair === null) return this.fail()
    const is = this.readUntil(pair.keyEnd, MAX_HEAD)
    if (is === MORE) return false
    const header = this.takeGathered()
    if (is === NO || !this.#beginValue(pair, header)) return this.fail()
    if (pair.valueOpen !== null) return this.enter(BEFORE_VALUE)
    return this.enter(pair.verbatim === null ? VALUE : VALUE_START)
  }

  /** @returns false if the header names no key */
  #beginValue({ toKey, untyped, isTyped, isExact }: CompiledPair, header: string): boolean {
    const key = toKey(header)
    if (key === null) return false
    const { style, comma, colon } = this.#format
    const declared = isTyped ? typesOf(this.out.options.tools.parameter(this.#name, key.name)) : []
    this.#argumentChars += header.length
    this.#value.begin((this.#keys.size === 0 ? '{' : comma) + quote(key.name) + colon, {
      types: key.types ?? declared,
      untyped,
      style,
      isExact,
    })
    this.#keys.add(key.name)
    return true
  }

  #startValue(): boolean {
    const { pair } = this.#format
    if (pair === null || pair.valueOpen === null) return this.fail()
    if (!this.skipSpace()) return false
    const is = this.match(pair.valueOpen)
    if (is === MORE) return false
    return is === NO ? this.fail() : this.enter(VALUE)
  }

  /** Finds the mark before a verbatim value. */
  #findVerbatim(): boolean {
    const verbatim = this.#format.pair?.verbatim
    if (verbatim === undefined || verbatim === null) return this.fail()
    const limit = Math.min(this.input.length, this.at + MAX_HEAD - this.gathered.length)
    let at = this.at
    while (at < limit && isSpace(this.input.charCodeAt(at))) at++
    this.gathered += this.input.slice(this.at, at)
    this.consume(at - this.at)
    if (this.gathered.length < MAX_HEAD) {
      if (this.at === this.input.length) return false
      const is = this.match(verbatim.open)
      if (is === MORE && !this.isEnd) return false
      if (is === YES) {
        this.gathered = ''
        this.#value.keepBreaks()
        return this.enter(VERBATIM)
      }
    }
    this.#value.push(this.takeGathered())
    return this.enter(VALUE)
  }

  #readVerbatim(): boolean {
    const verbatim = this.#format.pair?.verbatim
    if (verbatim === undefined || verbatim === null) return this.fail()
    const place = verbatim.close.find(this.input, this.at)
    const isFound = verbatim.close.found >= 0
    if (!this.#pushValue(place)) return this.fail()
    if (!isFound) return false
    this.consume(verbatim.close.markers[0].length)
    return this.enter(BEHIND_VERBATIM)
  }

  #skipBehindVerbatim(): boolean {
    return this.skipSpace() && this.enter(VALUE)
  }

  /** Passes on text of a value. @returns false if the arguments are longer than allowed */
  #pushValue(until: number): boolean {
    const room = this.out.options.limits.maxArgumentChars - this.#argumentChars
    const stop = Math.min(until, this.at + Math.max(0, room))
    if (stop > this.at) {
      this.#argumentChars += stop - this.at
      this.#value.push(this.input.slice(this.at, stop))
      this.consume(stop - this.at)
    }
    return stop === until
  }

  #readValue(): boolean {
    const { pair } = this.#format
    if (pair === null) return this.fail()
    const place = pair.value.find(this.input, this.at)
    const { found } = pair.value
    if (!this.#pushValue(place)) return this.fail()
    if (found < 0) return false
    const mark = pair.value.markers[found]
    if (found === 0) {
      this.#value.end()
      this.consume(mark.length)
      return this.enter(BEHIND_PAIR)
    }
    if (found > 1) {
      this.#value.push(pair.replacements[found])
      this.consume(mark.length)
      return true
    }
    const isNext = this.#isDeclaredAt(pair, place + mark.length)
    if (isNext === MORE) return false
    if (isNext === YES) {
      this.#value.end()
      this.consume(mark.length)
      return this.enter(KEY)
    }
    return this.#pushValue(place + mark.length) || this.fail()
  }

  /** Whether a header names a declared parameter that the call lacks; then the end mark of the value before it is missing. */
  #isDeclaredAt({ keyEnd, toKey }: CompiledPair, place: number): number {
    const { tools } = this.out.options
    if (!tools.has(this.#name)) return NO
    const window = this.input.slice(place, place + MAX_NEXT_KEY)
    const end = window.indexOf(keyEnd.markers[0])
    if (end < 0) return window.length === MAX_NEXT_KEY || this.isEnd ? NO : MORE
    const key = toKey(window.slice(0, end))
    if (key === null || this.#keys.has(key.name)) return NO
    return tools.parameter(this.#name, key.name) === undefined ? NO : YES
  }

  /** Skips a short text that is neither pair nor end, since models write commas and line breaks there. */
  #afterPair(): boolean {
    const { behindPair } = this.#format
    const is = this.readUntil(behindPair, MAX_HEAD)
    if (is === MORE) return this.isEnd && this.#endsHere() && this.#endPairs(1)
    const { found } = behindPair
    this.gathered = ''
    if (is === NO) return this.fail()
    if (found === 0) return this.enter(KEY)
    return this.#endPairs(found === 1 ? 1 : 0)
  }

  /** The text has ended, and only the last mark of the call is missing. */
  #endsHere(): boolean {
    const { hasOneEnd, close } = this.#format
    return hasOneEnd && close[0].startsWith(this.takeGathered().trim())
  }

  /** The call is complete; missing end marks are ignored. */
  #close(): boolean {
    const { close } = this.#format
    while (this.#sequenceAt < close.length) {
      if (!this.skipSpace()) return false
      const is = this.match(close[this.#sequenceAt])
      if (is === MORE) return false
      if (is === NO) break
      this.#sequenceAt++
    }
    this.out.close()
    return this.enter(this.#isInSection ? BEHIND_CALL : TEXT)
  }

  /** Space between the calls of a section is not text. */
  #skipGap(): boolean {
    while (this.at < this.input.length && isSpace(this.input.charCodeAt(this.at))) this.at++
    return this.at < this.input.length && this.enter(TEXT)
  }
}
