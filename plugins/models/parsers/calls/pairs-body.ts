/** Reads arguments written as pairs of key and value between marks; the text of strings is passed on as it arrives. @hot */
import { MORE, NO, YES } from '../scan/chunk-reader.ts'
import { isSpace, type JsonStyle } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { typesOf } from '../scan/tool-types.ts'
import type { Untyped } from '../scan/typed-value.ts'
import type { CallOutput } from './call-output.ts'
import type { HeadedFormat, Heads } from './headed-calls-reader.ts'
import { ObjectBody } from './object-body.ts'

/** A key and the types in its header; undefined uses the schema of the tool. */
export interface PairKey {
  readonly name: string
  readonly types?: readonly string[]
}

export interface PairFormat {
  readonly open: string
  readonly keyEnd: string
  /** Null if the header names no key. Default: the trimmed header. */
  readonly toKey?: (header: string) => PairKey | null
  /** Mark between key and value after `keyEnd`. */
  readonly valueOpen?: string
  readonly close: string
  /** Marks around a value; a closing mark between them is data. Only space may be beside them. */
  readonly verbatim?: readonly [open: string, close: string]
  /** Texts in a value, and their replacements. */
  readonly replaced?: ReadonlyMap<string, string>
  /** Keeps a line break at either end of a value. Default false: one is removed. */
  readonly isExact?: boolean
  /** Whether the tool's schema decides types; default true. */
  readonly isTyped?: boolean
  /** Values without a declared type; default `infer`. */
  readonly untyped?: Untyped
  /** Space between members; default `compact`. */
  readonly style?: JsonStyle
}

interface CompiledPairs {
  readonly format: PairFormat
  readonly keyEnd: MarkerSearch
  /** Found: 0 the end of the value, 1 another pair, else a text that is replaced. */
  readonly value: MarkerSearch
  /** By index of the text in `value`. */
  readonly replacements: readonly string[]
  readonly verbatimEnd: MarkerSearch | null
  /** Found: 0 another pair, else a closing mark of the call. */
  readonly next: MarkerSearch
  /** The only closing mark of the call, which may be missing at the end of the text; null if there are more. */
  readonly onlyEnd: string | null
}

/** Adds pairs of keys and values to the marks of a format. */
export function withPairs(heads: Heads, format: PairFormat): HeadedFormat {
  const { open, close, verbatim, replaced = new Map<string, string>() } = format
  const pairs: CompiledPairs = {
    format,
    keyEnd: new MarkerSearch([format.keyEnd]),
    value: new MarkerSearch([close, open, ...replaced.keys()]),
    replacements: ['', '', ...replaced.values()],
    verbatimEnd: verbatim === undefined ? null : new MarkerSearch([verbatim[1]]),
    next: new MarkerSearch([open, ...heads.close]),
    onlyEnd: heads.section === undefined && heads.close.length === 1 ? heads.close[0] : null,
  }
  return { ...heads, body: (out, tool) => new PairsBody(out, tool, pairs) }
}

/** Maximum length of keys and of text between pairs. */
const MAX_HEAD = 1_024
/** Maximum length of the header of a pair that begins within a value. */
const MAX_NEXT_KEY = 256

class PairsBody extends ObjectBody {
  readonly #pairs: CompiledPairs
  /** Keys of the call so far. */
  readonly #keys = new Set<string>()

  constructor(out: CallOutput, tool: string, pairs: CompiledPairs) {
    super(out, tool)
    this.#pairs = pairs
  }

  /** A pair, or the end of a call without arguments, must follow at once. */
  protected override readText(): boolean {
    const { next } = this.#pairs
    const place = next.find(this.input, this.at)
    const { found } = next
    if (place > this.at || place === this.input.length) return this.fail()
    if (found < 0) return false
    if (found === 0) this.consume(next.markers[0].length)
    if (!this.out.start(this.tool)) return this.fail()
    return found === 0 ? this.enter(this.#readKey) : this.complete()
  }

  #readKey(): boolean {
    const { keyEnd, format } = this.#pairs
    const is = this.readUntil(keyEnd, MAX_HEAD)
    if (is === MORE) return false
    const header = this.takeGathered()
    if (is === NO || !this.#beginValue(header)) return this.fail()
    if (format.valueOpen !== undefined) return this.enter(this.#openValue)
    return this.enter(format.verbatim === undefined ? this.#readValue : this.#findVerbatim)
  }

  /** @returns false if the header names no key */
  #beginValue(header: string): boolean {
    const key = this.#keyOf(header)
    if (key === null) return false
    const { isTyped = true, untyped = 'infer', style = 'compact', isExact = false } = this.#pairs.format
    const [comma, colon] = style === 'spaced' ? [', ', ': '] : [',', ':']
    const declared = isTyped ? typesOf(this.out.options.tools.parameter(this.tool, key.name)) : []
    this.left -= header.length
    this.value.begin(this.head(key.name, comma, colon), {
      types: key.types ?? declared,
      untyped,
      style,
      isExact,
    })
    this.#keys.add(key.name)
    return true
  }

  #keyOf(header: string): PairKey | null {
    const { toKey } = this.#pairs.format
    return toKey === undefined ? { name: header.trim() } : toKey(header)
  }

  #openValue(): boolean {
    if (!this.skipSpace()) return false
    const is = this.match(this.#pairs.format.valueOpen ?? '')
    if (is === MORE) return false
    return is === NO ? this.fail() : this.enter(this.#readValue)
  }

  /** Finds the mark before a verbatim value. */
  #findVerbatim(): boolean {
    const [mark] = this.#pairs.format.verbatim ?? ['']
    const limit = Math.min(this.input.length, this.at + MAX_HEAD - this.gathered.length)
    let at = this.at
    while (at < limit && isSpace(this.input.charCodeAt(at))) at++
    this.gather(at)
    if (this.gathered.length < MAX_HEAD) {
      if (this.at === this.input.length) return false
      const is = this.match(mark)
      if (is === MORE && !this.isEnd) return false
      if (is === YES) {
        this.gathered = ''
        this.value.keepBreaks()
        return this.enter(this.#readVerbatim)
      }
    }
    this.value.push(this.takeGathered())
    return this.enter(this.#readValue)
  }

  #readVerbatim(): boolean {
    const { verbatimEnd } = this.#pairs
    if (verbatimEnd === null) return this.fail()
    const place = verbatimEnd.find(this.input, this.at)
    const isFound = verbatimEnd.found >= 0
    if (!this.#pushValue(place)) return this.fail()
    if (!isFound) return false
    this.consume(verbatimEnd.markers[0].length)
    return this.enter(this.#behindVerbatim)
  }

  #behindVerbatim(): boolean {
    return this.skipSpace() && this.enter(this.#readValue)
  }

  /** Passes on text of a value. @returns false if the arguments are longer than allowed */
  #pushValue(until: number): boolean {
    const stop = Math.min(until, this.at + Math.max(0, this.left))
    if (stop > this.at) {
      this.left -= stop - this.at
      this.value.push(this.input.slice(this.at, stop))
      this.consume(stop - this.at)
    }
    return stop === until
  }

  #readValue(): boolean {
    const { value, replacements } = this.#pairs
    const place = value.find(this.input, this.at)
    const { found } = value
    if (!this.#pushValue(place)) return this.fail()
    if (found < 0) return false
    const mark = value.markers[found]
    if (found === 0) {
      this.value.end()
      this.consume(mark.length)
      return this.enter(this.#afterPair)
    }
    if (found > 1) {
      this.value.push(replacements[found])
      this.consume(mark.length)
      return true
    }
    const isNext = this.#isMissingAt(place + mark.length)
    if (isNext === MORE) return false
    if (isNext === YES) {
      this.value.end()
      this.consume(mark.length)
      return this.enter(this.#readKey)
    }
    return this.#pushValue(place + mark.length) || this.fail()
  }

  /** Whether a header names a declared parameter that the call lacks; then the end mark of the value before it is missing. */
  #isMissingAt(place: number): number {
    const { tools } = this.out.options
    if (!tools.has(this.tool)) return NO
    const window = this.input.slice(place, place + MAX_NEXT_KEY)
    const end = window.indexOf(this.#pairs.format.keyEnd)
    if (end < 0) return window.length === MAX_NEXT_KEY || this.isEnd ? NO : MORE
    const key = this.#keyOf(window.slice(0, end))
    if (key === null || this.#keys.has(key.name)) return NO
    return tools.parameter(this.tool, key.name) === undefined ? NO : YES
  }

  /** Skips a short text that is neither pair nor end, since models write commas and line breaks there. */
  #afterPair(): boolean {
    const { next, onlyEnd } = this.#pairs
    const is = this.readUntil(next, MAX_HEAD)
    if (is === MORE) {
      if (this.isEnd && onlyEnd?.startsWith(this.takeGathered().trim())) this.complete()
      return false
    }
    this.gathered = ''
    if (is === NO) return this.fail()
    if (next.found === 0) return this.enter(this.#readKey)
    // The end mark is left to the reader of the call.
    this.at -= next.markers[next.found].length
    return this.complete()
  }
}
