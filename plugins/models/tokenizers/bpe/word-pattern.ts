/**
 * Converts the split patterns of vocabularies from Oniguruma's syntax to JavaScript's. Only constructs with the same meaning
 * are supported; the native library handles all others.
 */

/** Letters that match an ASCII letter when case is ignored, beyond its two cases. */
const FOLDED: Readonly<Record<string, string>> = { s: '\u017f', k: '\u212a' }
const PROPERTY = /^\\[pP]\{(?:L[ultmo]?|M[nce]?|N[dlo]?|P[cdsefio]?|S[mcko]?|Z[slp]?|C[cfon]?)\}/
const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})/
/** Escapes that both have. */
const ESCAPES = new Set(['r', 'n', 't', 'f', 'v'])
const SYNTAX = new Set('^$\\.*+?()[]{}|/')

/** @returns null for a pattern with unsupported constructs */
export function toWordPattern(pattern: string): RegExp | null {
  try {
    const source = new PatternWriter(pattern).write()
    return source === null ? null : new RegExp(source, 'gu')
  } catch {
    return null
  }
}

class PatternWriter {
  readonly #pattern: string
  #at = 0
  #out = ''

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  write(): string | null {
    while (this.#at < this.#pattern.length) if (!this.#item()) return null
    return this.#out
  }

  #item(): boolean {
    const rest = this.#pattern.slice(this.#at)
    const letter = this.#pattern[this.#at]
    const quantifier = QUANTIFIER.exec(rest)?.[0]
    if (quantifier !== undefined) {
      this.#take(quantifier)
      // A second one makes it possessive or lazy, or repeats it.
      return !QUANTIFIER.test(this.#pattern.slice(this.#at))
    }
    if (rest.startsWith('(?i:')) return this.#caseless()
    for (const opening of ['(?:', '(?!', '(?=']) if (rest.startsWith(opening)) return this.#take(opening)
    if (rest.startsWith('(?')) return false
    if (letter === '\\') return this.#escape(false)
    if (letter === '[') return this.#class()
    if (letter === '(' || letter === ')' || letter === '|') return this.#take(letter)
    if ('.^$]{}'.includes(letter)) return false
    return this.#take(letter)
  }

  #class(): boolean {
    this.#take(this.#pattern.startsWith('[^', this.#at) ? '[^' : '[')
    while (this.#at < this.#pattern.length) {
      const letter = this.#pattern[this.#at]
      if (letter === ']') return this.#take(']')
      // Nested classes and intersections.
      if (letter === '[' || this.#pattern.startsWith('&&', this.#at)) return false
      if (letter === '\\') {
        if (!this.#escape(true)) return false
      } else this.#take(letter)
    }
    return false
  }

  #escape(isInClass: boolean): boolean {
    const rest = this.#pattern.slice(this.#at)
    const property = PROPERTY.exec(rest)?.[0]
    if (property !== undefined) return this.#take(property)
    const letter = rest[1]
    if (letter === 's' || letter === 'S')
      return this.#replace(2, letter === 's' ? '\\p{White_Space}' : '\\P{White_Space}')
    if (letter === 'd') return this.#replace(2, '\\p{Nd}')
    if (letter !== undefined && ESCAPES.has(letter)) return this.#take(rest.slice(0, 2))
    if (letter === undefined || /[\p{L}\p{N}]/u.test(letter)) return false
    if (SYNTAX.has(letter) || (isInClass && letter === '-')) return this.#take(rest.slice(0, 2))
    return this.#replace(2, letter)
  }

  /** Words and apostrophes only. */
  #caseless(): boolean {
    const end = this.#pattern.indexOf(')', this.#at)
    const inside = this.#pattern.slice(this.#at + 4, end)
    if (end < 0 || !/^[a-z'|]*$/i.test(inside)) return false
    const either = inside.replace(/[a-z]/gi, (letter) => {
      const lower = letter.toLowerCase()
      return `[${lower}${lower.toUpperCase()}${FOLDED[lower] ?? ''}]`
    })
    return this.#replace(inside.length + 5, `(?:${either})`)
  }

  #take(text: string): boolean {
    return this.#replace(text.length, text)
  }

  #replace(length: number, text: string): boolean {
    this.#at += length
    this.#out += text
    return true
  }
}
