/**
 * Scans the bytes of a JSON text once: checks the structure outside strings, depth and number of values, and finds the
 * top-level `model` and `stream` of an object. A long text is scanned in steps, so that it does not block the thread. The
 * contents of strings are not checked. @hot
 * @source RFC 8259
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipScalar,
  skipSpace,
  skipStringPart,
  skipWord,
} from './json-bytes.ts'

/** Upper limit of the allowed depth. */
export const MAX_DEPTH = 512

/** What the scan expects next. */
const VALUE = 0
const KEY_OR_CLOSE = 1
const COLON_NEXT = 2
const COMMA_OR_CLOSE = 3
const KEY = 4
const VALUE_OR_CLOSE = 5
const END = 6

/** Top-level keys that matter to routing. */
const OTHER_KEY = 0
const MODEL_KEY = 1
const STREAM_KEY = 2
const STREAM_OPTIONS_KEY = 3
const STREAM_OPTIONS = 'stream_options'

/** Result of a step. */
export type ScanState = 'more' | 'whole' | 'broken' | 'too_deep'

/** Longer model names are ignored. */
export const MAX_MODEL_BYTES = 4_096
/** Length of the longest of these keys, each letter written as an escape. */
const MAX_ESCAPED_KEY_BYTES = 6 * STREAM_OPTIONS.length
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_T = 0x74
const NO_BYTES = Buffer.alloc(0)

export class JsonScan {
  /** Current byte offset. */
  at = 0
  /** Number of objects and arrays. */
  containers = 0
  /** Outside of strings: all values but one of each container. */
  commas = 0
  /** True if the text is one object. */
  isObject = false
  model: string | null = null
  modelStart = -1
  modelEnd = -1
  /** Of the value of the top-level `stream_options`; -1 if absent. */
  streamOptionsStart = -1
  /** False if absent or null. */
  stream = false
  /** True if the last value of the name has another type or is too long. */
  hasWrongModel = false
  hasWrongStream = false

  /** Allowed depth. */
  maxDepth = MAX_DEPTH
  #body: Buffer = NO_BYTES
  #depth = 0
  #expects = VALUE
  #key = OTHER_KEY
  /** Offset at which an incomplete string continues; 0 without one. */
  #stringAt = 0
  #isKey = false
  /** By depth: 1 inside an object, 0 inside an array. */
  readonly #isObjectAt = new Uint8Array(MAX_DEPTH + 1)

  /** Start of the next step; `at` stays at the start of a long string. */
  get reached(): number {
    return Math.max(this.at, this.#stringAt)
  }

  /** @param maxDepth 1 to MAX_DEPTH */
  begin(body: Buffer, maxDepth: number): this {
    this.#body = body
    this.maxDepth = maxDepth
    this.at = skipSpace(body, 0)
    this.containers = 0
    this.commas = 0
    this.isObject = body[this.at] === OPEN_BRACE
    this.model = null
    this.modelStart = -1
    this.modelEnd = -1
    this.streamOptionsStart = -1
    this.stream = false
    this.hasWrongModel = false
    this.hasWrongStream = false
    this.#depth = 0
    this.#expects = VALUE
    this.#key = OTHER_KEY
    this.#stringAt = 0
    return this
  }

  /**
   * Scans one step; any result but `more` ends the scan.
   * @param until byte offset from which on it may stop; the length of the text scans all of it
   */
  run(until: number): ScanState {
    const { maxDepth } = this
    const body = this.#body
    const isObjectAt = this.#isObjectAt
    const end = body.length
    let { at, containers, commas } = this
    let depth = this.#depth
    let expects = this.#expects
    let stringAt = this.#stringAt
    let isKey = this.#isKey
    let key = this.#key
    let state: ScanState = 'more'
    while (at < until || until >= end) {
      if (stringAt === 0) {
        at = skipSpace(body, at)
        if (expects === END || at >= end) {
          state = expects === END && at >= end ? 'whole' : 'broken'
          break
        }
        const byte = body[at]
        if (expects === COMMA_OR_CLOSE) {
          if (byte === COMMA) {
            commas++
            expects = isObjectAt[depth] === 1 ? KEY : VALUE
          } else if (byte === (isObjectAt[depth] === 1 ? CLOSE_BRACE : CLOSE_BRACKET)) {
            if (--depth === 0) expects = END
          } else {
            state = 'broken'
            break
          }
          at++
          continue
        }
        if (expects === COLON_NEXT) {
          if (byte !== COLON) {
            state = 'broken'
            break
          }
          at++
          expects = VALUE
          continue
        }
        if (byte === QUOTE) {
          isKey = expects === KEY || expects === KEY_OR_CLOSE
          stringAt = at + 1
        } else if (expects === KEY || expects === KEY_OR_CLOSE) {
          if (byte !== CLOSE_BRACE || expects === KEY) {
            state = 'broken'
            break
          }
          at++
          expects = --depth === 0 ? END : COMMA_OR_CLOSE
          continue
        } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
          if (depth === 1 && key !== OTHER_KEY) this.#takeOther(key, at, body)
          if (depth === maxDepth) {
            state = 'too_deep'
            break
          }
          containers++
          isObjectAt[++depth] = byte === OPEN_BRACE ? 1 : 0
          expects = byte === OPEN_BRACE ? KEY_OR_CLOSE : VALUE_OR_CLOSE
          at++
          continue
        } else if (byte === CLOSE_BRACKET && expects === VALUE_OR_CLOSE) {
          at++
          expects = --depth === 0 ? END : COMMA_OR_CLOSE
          continue
        } else {
          const after = skipScalar(body, at)
          if (after < 0) {
            state = 'broken'
            break
          }
          if (depth === 1 && key !== OTHER_KEY) this.#takeOther(key, at, body)
          at = after
          expects = depth === 0 ? END : COMMA_OR_CLOSE
          continue
        }
      }
      const after = skipStringPart(body, stringAt, until)
      if (after < 0) {
        stringAt = -after
        if (until >= end || stringAt >= end) state = 'broken'
        break
      }
      stringAt = 0
      if (isKey) {
        if (depth === 1) key = keyAt(body, at, after)
        expects = COLON_NEXT
      } else {
        if (depth === 1 && key !== OTHER_KEY && !this.#takeString(key, at, after)) {
          state = 'broken'
          break
        }
        expects = depth === 0 ? END : COMMA_OR_CLOSE
      }
      at = after
    }
    this.at = at
    this.#depth = depth
    this.#expects = expects
    this.containers = containers
    this.commas = commas
    this.#stringAt = stringAt
    this.#isKey = isKey
    this.#key = key
    // Releases the text.
    if (state !== 'more') this.#body = NO_BYTES
    return state
  }

  /** A value of one of the keys that is no string. */
  #takeOther(key: number, at: number, body: Buffer): void {
    const byte = body[at]
    if (key === STREAM_OPTIONS_KEY) this.streamOptionsStart = at
    else if (key === MODEL_KEY) {
      this.model = null
      this.modelStart = -1
      this.modelEnd = -1
      this.hasWrongModel = byte !== LETTER_N
    } else {
      this.stream = byte === LETTER_T
      this.hasWrongStream = byte !== LETTER_T && byte !== LETTER_F && byte !== LETTER_N
    }
  }

  /** @returns false if the model name is an invalid JSON string */
  #takeString(key: number, from: number, after: number): boolean {
    if (key === STREAM_KEY) this.hasWrongStream = true
    if (key === STREAM_OPTIONS_KEY) this.streamOptionsStart = from
    if (key !== MODEL_KEY) return true
    this.hasWrongModel = after - from > MAX_MODEL_BYTES
    if (this.hasWrongModel) return true
    this.model = plainString(this.#body, from + 1, after - 1) ?? textOf(this.#body, from, after)
    this.modelStart = from
    this.modelEnd = after
    return this.model !== null
  }
}

function keyAt(body: Buffer, from: number, after: number): number {
  const length = after - from - 2
  if (length === 5 && skipWord(body, from + 1, 'model') > 0) return MODEL_KEY
  if (length === 6 && skipWord(body, from + 1, 'stream') > 0) return STREAM_KEY
  if (length === STREAM_OPTIONS.length && skipWord(body, from + 1, STREAM_OPTIONS) > 0)
    return STREAM_OPTIONS_KEY
  if (length > MAX_ESCAPED_KEY_BYTES || length <= 6) return OTHER_KEY
  for (let at = from + 1; at < after - 1; at++) {
    if (body[at] !== BACKSLASH) continue
    const key = textOf(body, from, after)
    if (key === STREAM_OPTIONS) return STREAM_OPTIONS_KEY
    return key === 'model' ? MODEL_KEY : key === 'stream' ? STREAM_KEY : OTHER_KEY
  }
  return OTHER_KEY
}

/** Text between two positions if it needs no decoding; null if it has escapes, control or non-ASCII bytes. */
function plainString(body: Buffer, from: number, to: number): string | null {
  for (let at = from; at < to; at++) {
    const byte = body[at]
    if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return null
  }
  return body.toString('latin1', from, to)
}

/**
 * Decodes one string of a JSON text.
 *
 * @param from position of the opening quote
 * @param after position behind the closing one
 * @returns null for an invalid escape or a control character
 */
function textOf(body: Buffer, from: number, after: number): string | null {
  try {
    return JSON.parse(body.toString('utf8', from, after)) as string
  } catch {
    return null
  }
}
