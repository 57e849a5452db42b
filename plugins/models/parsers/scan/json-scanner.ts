/**
 * Reads one JSON value in pieces and passes on its text, so that numbers, key order and escapes do not change. Reads each
 * character once. @hot
 */

/** Space in the output. */
export type JsonStyle = 'compact' | 'spaced' | 'raw'

export const RUNNING = 0
export const DONE = 1
export const FAILED = 2

/** Maximum depth of nesting. */
export const MAX_DEPTH = 128

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Expected next token outside strings, numbers and words. */
const VALUE = 0
const VALUE_OR_CLOSE = 1
const KEY = 2
const KEY_OR_CLOSE = 3
const COLON_NEXT = 4
const COMMA_OR_CLOSE = 5

/** Kind of the current token. */
const NOTHING = 0
const STRING = 1
const ESCAPE = 2
const HEX = 3
const WORD = 4
const MINUS = 5
const ZERO = 6
const INTEGER = 7
const POINT = 8
const FRACTION = 9
const EXPONENT = 10
const EXPONENT_SIGN = 11
const EXPONENT_DIGITS = 12

export class JsonScanner {
  status = RUNNING
  /** Text that was read and not taken, in the style of the output. */
  output = ''
  /** The value is an object whose first member has a key and the beginning of a value: prose does not get this far. */
  hasEntry = false
  /** Code of the first character of the value; 0 before it. */
  firstCode = 0
  #style: JsonStyle
  #budget: number
  readonly #isObject = new Uint8Array(MAX_DEPTH + 1)
  #depth = 0
  #expects = VALUE
  #inside = NOTHING
  #isKey = false
  #hexLeft = 0
  #word = ''
  #wordAt = 0

  /** @param maxLength maximum characters of a value */
  constructor(style: JsonStyle, maxLength: number) {
    this.#style = style
    this.#budget = maxLength
  }

  /** Begins another value. */
  reset(style: JsonStyle, maxLength: number): void {
    this.status = RUNNING
    this.output = ''
    this.hasEntry = false
    this.firstCode = 0
    this.#style = style
    this.#budget = maxLength
    this.#depth = 0
    this.#expects = VALUE
    this.#inside = NOTHING
  }

  take(): string {
    const { output } = this
    this.output = ''
    return output
  }

  /**
   * Reads from `at` to `end`. @returns the end of the value in the text; after a failure, the place of the first invalid
   * character
   */
  feed(text: string, at: number, end: number): number {
    const limit = end - at > this.#budget ? at + this.#budget : end
    const stop = this.#read(text, at, limit)
    this.#budget -= stop - at
    if (this.status === RUNNING && this.#budget === 0) this.status = FAILED
    return stop
  }

  /** Ends the input. A number at the top level is complete; any other open value fails. */
  finish(): void {
    if (this.status !== RUNNING) return
    this.status = this.#depth === 0 && isWholeNumber(this.#inside) ? DONE : FAILED
  }

  #read(text: string, start: number, limit: number): number {
    let at = start
    let from = start
    while (at < limit) {
      const code = text.charCodeAt(at)
      if (this.#inside === STRING) {
        if (code === QUOTE) {
          at++
          this.#inside = NOTHING
          if (this.#isKey) this.#expects = COLON_NEXT
          else if (this.#valueEnded()) break
        } else if (code === BACKSLASH) {
          at++
          this.#inside = ESCAPE
        } else if (code < 0x20) {
          // Models that write code often leave line breaks unescaped.
          this.output += text.slice(from, at) + escapeOf(code)
          at++
          from = at
        } else at++
        continue
      }
      if (this.#inside === NOTHING) {
        if (isSpace(code)) {
          if (this.#style !== 'raw' || this.firstCode === 0) {
            this.output += text.slice(from, at)
            from = at + 1
          }
          at++
          continue
        }
        if (!this.#token(code)) {
          this.status = FAILED
          break
        }
        at++
        if (this.#style === 'spaced' && (code === COMMA || code === COLON)) {
          this.output += `${text.slice(from, at)} `
          from = at
        }
        if (this.status === DONE) break
        continue
      }
      if (this.#continues(code)) {
        at++
        if (this.#inside === NOTHING && this.#valueEnded()) break
        continue
      }
      // A number ends before the first character that is not part of it, which is read again.
      if (!isWholeNumber(this.#inside)) {
        this.status = FAILED
        break
      }
      this.#inside = NOTHING
      if (this.#valueEnded()) break
    }
    if (at > from) this.output += text.slice(from, at)
    return at
  }

  /** Reads a character outside of strings, numbers and words. */
  #token(code: number): boolean {
    const expects = this.#expects
    if (expects === COLON_NEXT) {
      if (code !== COLON) return false
      this.#expects = VALUE
      return true
    }
    if (expects === COMMA_OR_CLOSE) {
      if (code === COMMA) {
        this.#expects = this.#isObject[this.#depth] === 1 ? KEY : VALUE
        return true
      }
      return this.#closes(code)
    }
    if (expects === KEY || expects === KEY_OR_CLOSE) {
      if (code === QUOTE) {
        this.#inside = STRING
        this.#isKey = true
        return true
      }
      return expects === KEY_OR_CLOSE && this.#closes(code)
    }
    if (expects === VALUE_OR_CLOSE && code === CLOSE_BRACKET) return this.#closes(code)
    const isMember = this.#depth > 0
    if (!this.#startsValue(code)) return false
    this.hasEntry ||= isMember
    return true
  }

  #startsValue(code: number): boolean {
    if (this.firstCode === 0) this.firstCode = code
    if (code === QUOTE) {
      this.#inside = STRING
      this.#isKey = false
      return true
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (this.#depth === MAX_DEPTH) return false
      this.#depth++
      this.#isObject[this.#depth] = code === OPEN_BRACE ? 1 : 0
      this.#expects = code === OPEN_BRACE ? KEY_OR_CLOSE : VALUE_OR_CLOSE
      return true
    }
    if (code === 0x2d) this.#inside = MINUS
    else if (code === 0x30) this.#inside = ZERO
    else if (code > 0x30 && code <= 0x39) this.#inside = INTEGER
    else {
      this.#word = code === 0x74 ? 'true' : code === 0x66 ? 'false' : code === 0x6e ? 'null' : ''
      if (this.#word === '') return false
      this.#inside = WORD
      this.#wordAt = 1
    }
    return true
  }

  #closes(code: number): boolean {
    if (this.#depth === 0 || code !== (this.#isObject[this.#depth] === 1 ? CLOSE_BRACE : CLOSE_BRACKET))
      return false
    this.#depth--
    this.#valueEnded()
    return true
  }

  /** @returns true at the end of the top-level value */
  #valueEnded(): boolean {
    if (this.#depth > 0) {
      this.#expects = COMMA_OR_CLOSE
      return false
    }
    this.status = DONE
    return true
  }

  /** Reads a character inside an escape, a word or a number. */
  #continues(code: number): boolean {
    const isDigit = code >= 0x30 && code <= 0x39
    switch (this.#inside) {
      case ESCAPE:
        if (code === 0x75) {
          this.#inside = HEX
          this.#hexLeft = 4
          return true
        }
        this.#inside = STRING
        return isEscape(code)
      case HEX:
        if (!isDigit && !((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66)) return false
        if (--this.#hexLeft === 0) this.#inside = STRING
        return true
      case WORD:
        if (code !== this.#word.charCodeAt(this.#wordAt)) return false
        if (++this.#wordAt === this.#word.length) this.#inside = NOTHING
        return true
      case MINUS:
        if (isDigit) this.#inside = code === 0x30 ? ZERO : INTEGER
        return isDigit
      case ZERO:
      case INTEGER:
        if (isDigit) return this.#inside === INTEGER
        return this.#leavesInteger(code)
      case POINT:
        if (isDigit) this.#inside = FRACTION
        return isDigit
      case FRACTION:
        if (isDigit) return true
        if ((code | 0x20) !== 0x65) return false
        this.#inside = EXPONENT
        return true
      case EXPONENT:
        this.#inside = isDigit ? EXPONENT_DIGITS : EXPONENT_SIGN
        return isDigit || code === 0x2b || code === 0x2d
      case EXPONENT_SIGN:
        if (isDigit) this.#inside = EXPONENT_DIGITS
        return isDigit
      default:
        return isDigit
    }
  }

  #leavesInteger(code: number): boolean {
    if (code === 0x2e) this.#inside = POINT
    else if ((code | 0x20) === 0x65) this.#inside = EXPONENT
    else return false
    return true
  }
}

function isWholeNumber(inside: number): boolean {
  return inside === ZERO || inside === INTEGER || inside === FRACTION || inside === EXPONENT_DIGITS
}

function isEscape(code: number): boolean {
  switch (code) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true
    default:
      return false
  }
}

function escapeOf(code: number): string {
  if (code === 0x0a) return '\\n'
  if (code === 0x0d) return '\\r'
  if (code === 0x09) return '\\t'
  return `\\u00${code < 16 ? '0' : ''}${code.toString(16)}`
}

/** Space of JSON, and of the markup around calls. */
export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

export function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isSpace(text.charCodeAt(i))) return false
  return true
}
