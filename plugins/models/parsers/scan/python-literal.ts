/** Converts Python literals and keyword arguments to JSON text. */
import { isSpace, MAX_DEPTH } from './json-scanner.ts'

/** Maximum integer that stays a number; larger ones become strings of digits. */
const MAX_INTEGER = 18_446_744_073_709_551_615n
const MIN_INTEGER = -9_223_372_036_854_775_808n

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\n', ''],
])

const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy
const NUMBER = /(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:[eE][+-]?\d+)?)/y
const PREFIXED = /(?:[uU]|[rR]|[bB]|[bB][rR]|[rR][bB])?(?='|")/y

/** The JSON object of `a=1, b='x'`; null when that is not all there is. */
export function keywordsToJson(text: string): string | null {
  return new LiteralReader(text).keywords()
}

/** The JSON text of one literal; null when that is not all there is. */
export function literalToJson(text: string): string | null {
  return new LiteralReader(text).whole()
}

class LiteralReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): string | null {
    const value = this.#value(0)
    this.#space()
    return this.#at === this.#text.length ? value : null
  }

  keywords(): string | null {
    const members: string[] = []
    this.#space()
    while (this.#at < this.#text.length) {
      const key = this.#match(NAME)
      if (key === null) return null
      this.#space()
      if (!this.#skip('=')) return null
      const value = this.#value(0)
      if (value === null) return null
      members.push(`${JSON.stringify(key)}:${value}`)
      this.#space()
      if (this.#at === this.#text.length) break
      if (!this.#skip(',')) return null
      this.#space()
    }
    return `{${members.join(',')}}`
  }

  #value(depth: number): string | null {
    if (depth > MAX_DEPTH) return null
    this.#space()
    const char = this.#text[this.#at]
    if (char === undefined) return null
    if (char === '[' || char === '(') return this.#list(char === '[' ? ']' : ')', depth)
    if (char === '{') return this.#dict(depth)
    const isString = this.#isPrefixed
    if (isString) {
      const value = this.#string()
      return value === null ? null : JSON.stringify(value)
    }
    if (char === '-' || char === '+' || char === '.' || (char >= '0' && char <= '9')) return this.#number()
    const name = this.#match(NAME)
    if (name === null) return null
    if (name === 'True' || name === 'true') return 'true'
    if (name === 'False' || name === 'false') return 'false'
    if (name === 'None' || name === 'null') return 'null'
    const next = this.#text[this.#at]
    // Calls, attributes and words such as lambda are no literals.
    if (next === '(' || next === '.') return null
    return JSON.stringify(name)
  }

  /** A tuple is a list; one value in brackets is that value. */
  #list(close: string, depth: number): string | null {
    this.#at++
    const items: string[] = []
    let hasComma = close === ']'
    while (true) {
      this.#space()
      if (this.#skip(close)) break
      const item = this.#value(depth + 1)
      if (item === null) return null
      items.push(item)
      this.#space()
      if (this.#skip(',')) hasComma = true
      else if (this.#text[this.#at] !== close) return null
    }
    return !hasComma && items.length === 1 ? items[0] : `[${items.join(',')}]`
  }

  #dict(depth: number): string | null {
    this.#at++
    const members: string[] = []
    while (true) {
      this.#space()
      if (this.#skip('}')) break
      const key = this.#value(depth + 1)
      if (key === null || key[0] === '{' || key[0] === '[') return null
      this.#space()
      if (!this.#skip(':')) return null
      const value = this.#value(depth + 1)
      if (value === null) return null
      members.push(`${key[0] === '"' ? key : JSON.stringify(key)}:${value}`)
      this.#space()
      if (!this.#skip(',') && this.#text[this.#at] !== '}') return null
    }
    return `{${members.join(',')}}`
  }

  #number(): string | null {
    const sign = this.#skip('-') ? '-' : ''
    if (sign === '') this.#skip('+')
    this.#space()
    const written = this.#match(NUMBER)?.replaceAll('_', '')
    if (written === undefined || written === '') return null
    const next = this.#text[this.#at]
    if (next !== undefined && /[\p{L}\p{N}_.]/u.test(next)) return null
    if (/^(0[xXoObB]|\d+$)/.test(written)) return toInteger(sign, written)
    const [, whole, fraction = '', exponent = ''] = /^(\d*)\.?(\d*)(.*)$/.exec(written) ?? []
    const digits = (whole ?? '').replace(/^0+(?=\d)/, '') || '0'
    return `${sign}${digits}${written.includes('.') ? `.${fraction || '0'}` : ''}${exponent}`
  }

  /** One or more literals side by side. */
  #string(): string | null {
    const parts: string[] = []
    while (this.#isPrefixed) {
      const prefix = (this.#match(PREFIXED) ?? '').toLowerCase()
      const part = this.#quoted(prefix.includes('r'), prefix.includes('b'))
      if (part === null) return null
      parts.push(part)
      this.#space()
    }
    return parts.join('')
  }

  #quoted(isRaw: boolean, isBytes: boolean): string | null {
    const text = this.#text
    const char = text[this.#at]
    const close = text.startsWith(char.repeat(3), this.#at) ? char.repeat(3) : char
    this.#at += close.length
    const parts: string[] = []
    let from = this.#at
    while (this.#at < text.length) {
      if (text.startsWith(close, this.#at)) {
        parts.push(text.slice(from, this.#at))
        this.#at += close.length
        const value = parts.join('')
        return isBytes && !isRaw ? Buffer.from(value, 'latin1').toString('utf8') : value
      }
      if (text[this.#at] !== '\\') {
        this.#at++
        continue
      }
      if (isRaw) {
        this.#at += 2
        continue
      }
      parts.push(text.slice(from, this.#at), this.#escape())
      from = this.#at
    }
    return null
  }

  #escape(): string {
    const char = this.#text[this.#at + 1] ?? ''
    const digits = char === 'x' ? 2 : char === 'u' ? 4 : char === 'U' ? 8 : 0
    const hex = this.#text.slice(this.#at + 2, this.#at + 2 + digits)
    if (digits > 0 && hex.length === digits && /^[\da-fA-F]+$/.test(hex)) {
      const point = Number.parseInt(hex, 16)
      this.#at += 2 + digits
      return point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd'
    }
    const octal = /[0-7]{1,3}/y
    octal.lastIndex = this.#at + 1
    const code = octal.exec(this.#text)?.[0]
    if (code !== undefined) {
      this.#at += 1 + code.length
      return String.fromCodePoint(Number.parseInt(code, 8))
    }
    this.#at += 1 + char.length
    return ESCAPES.get(char) ?? `\\${char}`
  }

  #space(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #skip(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  get #isPrefixed(): boolean {
    PREFIXED.lastIndex = this.#at
    return PREFIXED.test(this.#text)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found === null) return null
    this.#at += found[0].length
    return found[0]
  }
}

function toInteger(sign: string, written: string): string | null {
  // Making a number of very many digits takes more than linear time.
  if (written.length > 64) return JSON.stringify(sign + written)
  try {
    const value = BigInt(written) * (sign === '-' ? -1n : 1n)
    const text = value === 0n && sign === '-' ? '-0' : value.toString()
    return value > MAX_INTEGER || value < MIN_INTEGER ? JSON.stringify(text) : text
  } catch {
    return null
  }
}
