/** Reads calls with a head that contains the name; the reader of the format's body reads the arguments. @hot */
import { MORE, NO, YES } from '../scan/chunk-reader.ts'
import { FAILED, isSpace, RUNNING } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'

/** Reads the arguments of one call, piece by piece. */
export interface BodyReader {
  /** `RUNNING`, `DONE` or `FAILED`, as of `JsonScanner`. */
  readonly status: number
  /**
   * Starts the call once the text is certainly a call, and writes its arguments.
   * @param isEnd the text is complete
   * @returns the end of the decided text, which is before the marks that close the call; the rest is passed again
   */
  feed(text: string, from: number, isEnd: boolean): number
}

/** @param firstCode code of the first character of the arguments */
export type OpenBody = (out: CallOutput, tool: string, firstCode: number) => BodyReader

/** The marks of a format whose calls are `open… name … body close…`, perhaps all of them inside a section. */
export interface Heads {
  /** Marks around the calls, in one or more spellings. */
  readonly section?: readonly [open: readonly string[], close: readonly string[]]
  /** Calls outside a section count too. */
  readonly isSectionOptional?: boolean
  /** Marks before the name; space between them is allowed. */
  readonly open: readonly string[]
  /** Mark after the name, or how a name without one ends: with its line, its word, or before the next tag. */
  readonly nameEnd: string | { readonly stop: 'line' | 'word' | 'tag' }
  /** Default: trimmed. */
  readonly toName?: (header: string) => string | null
  /** Each of them may be missing. */
  readonly close: readonly string[]
  /** Creates the format of a section whose opening mark has a suffix up to `>`; null if it is not a valid suffix. */
  readonly suffixed?: (suffix: string) => HeadedFormat | null
}

export interface HeadedFormat extends Heads {
  readonly body: OpenBody
}

export interface CompiledHeads {
  readonly format: HeadedFormat
  /** Found: a call, if one may be outside a section; then a section. */
  readonly outside: MarkerSearch
  /** Found: 0 a call, else the section's end. */
  readonly inside: MarkerSearch
  readonly nameMark: MarkerSearch | null
}

export function compileHeads(format: HeadedFormat): CompiledHeads {
  const { section, isSectionOptional = false, open, nameEnd } = format
  const call = open[0]
  const [begins, ends] = section ?? [[], []]
  return {
    format,
    outside: new MarkerSearch(section === undefined || isSectionOptional ? [call, ...begins] : begins),
    inside: new MarkerSearch([call, ...ends]),
    nameMark: typeof nameEnd === 'string' ? new MarkerSearch([nameEnd]) : null,
  }
}

const MAX_HEAD = 1_024
const MAX_SUFFIX = 64
const SUFFIX_END = new MarkerSearch(['>'])

export class HeadedCallsReader extends CallReader {
  #heads: CompiledHeads
  #isInSection = false
  /** Calls passed on before the section began. */
  #callsBefore = 0
  /** Index of the next opening or closing mark of the call. */
  #mark = 0
  #name = ''
  /** Reader of the current call's arguments. */
  #body: BodyReader | null = null

  constructor(out: CallOutput, heads: CompiledHeads) {
    super(out)
    this.#heads = heads
  }

  protected override get isClosing(): boolean {
    return this.step === this.#close
  }

  protected override readText(): boolean {
    const { outside, inside, format } = this.#heads
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
    const mayBeCall = this.#isInSection || format.section === undefined || format.isSectionOptional === true
    if (found === 0 && mayBeCall) {
      this.begin(length)
      this.#mark = 1
      return this.enter(this.#open)
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
    return this.enter(format.suffixed === undefined ? this.#startSection : this.#readSuffix)
  }

  /** All marks of this section have the suffix of the first one. */
  #readSuffix(): boolean {
    const is = this.readUntil(SUFFIX_END, MAX_SUFFIX)
    if (is === MORE) return false
    const suffix = this.takeGathered()
    const format = is === YES ? this.#heads.format.suffixed?.(suffix) : null
    if (!format) {
      this.#isInSection = false
      return this.fail()
    }
    this.#heads = compileHeads(format)
    return this.enter(this.#startSection)
  }

  #startSection(): boolean {
    if (!this.skipSpace()) return false
    const { open, section } = this.#heads.format
    const opens = this.match(open[0])
    if (opens === YES) {
      this.#mark = 1
      return this.enter(this.#open)
    }
    const closes = (section?.[1] ?? []).map((mark) => this.match(mark))
    if (closes.includes(YES)) this.#isInSection = false
    else if (opens === MORE || closes.includes(MORE)) return false
    return this.fail()
  }

  #open(): boolean {
    const { open } = this.#heads.format
    if (this.#mark === open.length) return this.enter(this.#readName)
    if (!this.skipSpace()) return false
    const is = this.match(open[this.#mark])
    if (is === MORE) return false
    if (is === NO) return this.fail()
    this.#mark++
    return true
  }

  #readName(): boolean {
    const { nameMark, format } = this.#heads
    const is = nameMark === null ? this.#readBareName() : this.readUntil(nameMark, MAX_HEAD)
    if (is === MORE) return false
    if (is === NO) return this.fail()
    const head = this.takeGathered()
    const name = format.toName === undefined ? head.trim() : format.toName(head)
    if (name === null || name === '') return this.fail()
    this.#name = name
    this.#body = null
    return this.enter(this.#readBody)
  }

  /** A name without an end mark ends with its line, with its word, or before a tag. */
  #readBareName(): number {
    const { nameEnd } = this.#heads.format
    const stop = typeof nameEnd === 'string' ? 'word' : nameEnd.stop
    if (this.gathered === '' && stop !== 'line' && !this.skipSpace()) return MORE
    let at = this.at
    const limit = Math.min(this.input.length, at + MAX_HEAD - this.gathered.length)
    let is = MORE
    while (at < limit) {
      const code = this.input.charCodeAt(at)
      if (code === 0x3c) {
        is = stop === 'line' ? NO : YES
        break
      }
      if (stop === 'line' ? code === 0x0a : stop === 'word' && isSpace(code)) {
        is = YES
        break
      }
      at++
    }
    this.gather(at)
    if (is === MORE && this.gathered.length >= MAX_HEAD) return NO
    return is
  }

  #readBody(): boolean {
    if (this.#body === null && !this.skipSpace()) return false
    this.#body ??= this.#heads.format.body(this.out, this.#name, this.input.charCodeAt(this.at))
    const body = this.#body
    this.consume(body.feed(this.input, this.at, this.isEnd) - this.at)
    if (body.status === RUNNING) return false
    if (body.status === FAILED) return this.fail()
    this.out.done()
    this.#mark = 0
    return this.enter(this.#close)
  }

  /** The call is complete; missing end marks are ignored. */
  #close(): boolean {
    const { close } = this.#heads.format
    while (this.#mark < close.length) {
      if (!this.skipSpace()) return false
      if (this.match(close[this.#mark]) === MORE) return false
      this.#mark++
    }
    this.out.close()
    return this.enter(this.#isInSection ? this.#skipGap : this.readText)
  }

  /** Space between the calls of a section is not text. */
  #skipGap(): boolean {
    while (this.at < this.input.length && isSpace(this.input.charCodeAt(this.at))) this.at++
    return this.at < this.input.length && this.enter(this.readText)
  }
}
