/** Parses Python patterns to a syntax tree, in time linear in the pattern. */

const MAX_PATTERN = 4_096
const MAX_NESTING = 32
const ASCII = 128

/** A set of characters. */
export class CharSet {
  /** As a character class with the `v` flag. */
  readonly source: string
  readonly #ascii = new Uint8Array(ASCII)
  readonly #others: RegExp

  constructor(source: string) {
    this.source = source
    this.#others = new RegExp(source, 'v')
    for (let code = 0; code < ASCII; code++)
      this.#ascii[code] = this.#others.test(String.fromCharCode(code)) ? 1 : 0
  }

  has(codePoint: number): boolean {
    if (codePoint < ASCII) return this.#ascii[codePoint] === 1
    return this.#others.test(String.fromCodePoint(codePoint))
  }
}

/** Classes as Python defines them. */
const CLASSES: ReadonlyMap<string, string> = new Map([
  ['d', '\\p{Nd}'],
  ['s', '\\s\\x1c-\\x1f\\x85'],
  ['w', '\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}'],
])
const ANY = '[\\s\\S]'
const CONTROLS: ReadonlyMap<string, number> = new Map([
  ['n', 0x0a],
  ['t', 0x09],
  ['r', 0x0d],
  ['f', 0x0c],
  ['v', 0x0b],
  ['a', 0x07],
  ['0', 0],
])
/** A node of the syntax tree. */
export type Node =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'all'; readonly nodes: readonly Node[] }
  | { readonly kind: 'any'; readonly nodes: readonly Node[] }
  | {
      readonly kind: 'repeat'
      readonly node: Node
      readonly min: number
      readonly max: number
      readonly isLazy: boolean
    }
  | { readonly kind: 'group'; readonly node: Node; readonly name: string }
  | { readonly kind: 'start' }
  | { readonly kind: 'end'; readonly isLine: boolean }
  | { readonly kind: 'ahead'; readonly node: Node }
/** One literal character. */
export function literal(char: string): Node {
  return { kind: 'set', set: new CharSet(`[${escaped(char.codePointAt(0) as number)}]`) }
}

function escaped(code: number): string {
  return `\\u{${code.toString(16)}}`
}
/** @throws Error for invalid or unsupported syntax */
export function parsePattern(pattern: string): { readonly node: Node; readonly groups: readonly string[] } {
  if (pattern.length > MAX_PATTERN) throw new Error(`it is longer than ${MAX_PATTERN} characters`)
  const parser = new PatternParser(pattern)
  return { node: parser.parse(), groups: parser.groups }
}

class PatternParser {
  readonly groups: string[] = []
  readonly #chars: readonly string[]
  #at = 0
  #depth = 0

  constructor(pattern: string) {
    this.#chars = [...pattern]
  }

  parse(): Node {
    const node = this.#alternatives()
    if (this.#at < this.#chars.length) throw this.#problem('a ) that closes nothing')
    return node
  }

  #alternatives(): Node {
    if (++this.#depth > MAX_NESTING) throw this.#problem(`groups more than ${MAX_NESTING} deep`)
    const nodes = [this.#sequence()]
    while (this.#take('|')) nodes.push(this.#sequence())
    this.#depth--
    return nodes.length === 1 ? nodes[0] : { kind: 'any', nodes }
  }

  #sequence(): Node {
    const nodes: Node[] = []
    for (let char = this.#peek(); char !== undefined && char !== '|' && char !== ')'; char = this.#peek())
      nodes.push(this.#repeated(this.#single()))
    return nodes.length === 1 ? nodes[0] : { kind: 'all', nodes }
  }

  #single(): Node {
    const char = this.#next()
    switch (char) {
      case '.':
        return { kind: 'set', set: new CharSet(ANY) }
      case '^':
        return { kind: 'start' }
      case '$':
        return { kind: 'end', isLine: true }
      case '(':
        return this.#group()
      case '[':
        return { kind: 'set', set: this.#set() }
      case '\\':
        return this.#escape()
      case '*':
      case '+':
      case '?':
        throw this.#problem(`a ${char} that repeats nothing`)
      default:
        return literal(char)
    }
  }

  #group(): Node {
    let name: string | null = null
    if (this.#take('?')) {
      const kind = this.#next()
      const isNamed = (kind === 'P' && this.#take('<')) || (kind === '<' && !/[=!]/.test(this.#peek() ?? ''))
      if (isNamed) name = this.#name()
      // A dot always matches line breaks here.
      else if (kind === 's' && this.#take(')')) return { kind: 'all', nodes: [] }
      else if (kind === '=') return { kind: 'ahead', node: this.#closed() }
      else if (kind !== ':' && !(kind === 's' && this.#take(':')))
        throw this.#problem(`(?${kind}, which is not known here`)
    }
    const node = this.#closed()
    return name === null ? node : { kind: 'group', node, name }
  }

  #closed(): Node {
    const node = this.#alternatives()
    if (!this.#take(')')) throw this.#problem('a ( that nothing closes')
    return node
  }

  #name(): string {
    let name = ''
    for (let char = this.#next(); char !== '>'; char = this.#next()) name += char
    if (!/^[A-Za-z_]\w*$/.test(name)) throw this.#problem('a group without a proper name')
    if (this.groups.includes(name)) throw this.#problem(`two groups of the name ${name}`)
    this.groups.push(name)
    return name
  }

  #repeated(node: Node): Node {
    const [min, max] = this.#counts()
    if (min < 0) return node
    const isLazy = this.#take('?')
    if (this.#peek() === '+') throw this.#problem('a possessive repeat, which is not known here')
    if (/[*?]/.test(this.#peek() ?? '')) throw this.#problem('a repeat of a repeat')
    return { kind: 'repeat', node, min, max, isLazy }
  }

  /** Minimum and maximum of a repeat; -1 if there is none. */
  #counts(): readonly [number, number] {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY]
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY]
    if (this.#take('?')) return [0, 1]
    if (this.#peek() !== '{') return [-1, -1]
    const found = /^\{(\d{0,3})(?:(,)(\d{0,3}))?\}/.exec(this.#chars.slice(this.#at, this.#at + 9).join(''))
    // Not a count: the bracket is a literal.
    if (found === null || (found[1] === '' && (found[3] ?? '') === '')) return [-1, -1]
    this.#at += found[0].length
    const min = Number(found[1])
    const max = found[2] === undefined ? min : found[3] === '' ? Number.POSITIVE_INFINITY : Number(found[3])
    if (max < min) throw this.#problem(`a repeat of ${min} to ${max} times`)
    return [min, max]
  }

  #escape(): Node {
    const char = this.#next()
    if (char === 'A') return { kind: 'start' }
    if (char === 'Z' || char === 'z') return { kind: 'end', isLine: false }
    const known = this.#classOf(char)
    return { kind: 'set', set: new CharSet(known ?? `[${escaped(this.#codeOf(char))}]`) }
  }

  #classOf(char: string): string | null {
    const lower = char.toLowerCase()
    const inside = CLASSES.get(lower)
    if (inside === undefined) return null
    return char === lower ? `[${inside}]` : `[^${inside}]`
  }

  /** Code point of an escape for one character. */
  #codeOf(char: string): number {
    const control = CONTROLS.get(char)
    if (control !== undefined) return control
    const digits = char === 'x' ? 2 : char === 'u' ? 4 : char === 'U' ? 8 : 0
    if (digits > 0) {
      const hex = this.#chars.slice(this.#at, this.#at + digits).join('')
      const code = /^[\da-f]+$/i.test(hex) && hex.length === digits ? Number.parseInt(hex, 16) : -1
      if (code < 0 || code > 0x10ffff) throw this.#problem(`\\${char} without its ${digits} digits`)
      this.#at += digits
      return code
    }
    if (/[\dA-Za-z]/.test(char)) throw this.#problem(`\\${char}, which is not known here`)
    return char.codePointAt(0) as number
  }

  #set(): CharSet {
    const isNegated = this.#take('^')
    const parts: string[] = []
    for (let isFirst = true; isFirst || this.#peek() !== ']'; isFirst = false) {
      const from = this.#member()
      const isRange =
        typeof from === 'number' && this.#peek() === '-' && (this.#chars[this.#at + 1] ?? ']') !== ']'
      if (!isRange) {
        parts.push(typeof from === 'number' ? escaped(from) : from)
        continue
      }
      this.#at++
      const to = this.#member()
      if (typeof to !== 'number' || to < from) throw this.#problem('a range of characters that is none')
      parts.push(`${escaped(from)}-${escaped(to)}`)
    }
    this.#at++
    return new CharSet(`[${isNegated ? '^' : ''}${parts.join('')}]`)
  }

  /** A code point, or the source of a class. */
  #member(): number | string {
    const char = this.#next()
    if (char !== '\\') return char.codePointAt(0) as number
    const letter = this.#next()
    return this.#classOf(letter) ?? this.#codeOf(letter)
  }

  #peek(): string | undefined {
    return this.#chars[this.#at]
  }

  #take(char: string): boolean {
    if (this.#chars[this.#at] !== char) return false
    this.#at++
    return true
  }

  #next(): string {
    const char = this.#chars[this.#at]
    if (char === undefined) throw this.#problem('an end where something must follow')
    this.#at++
    return char
  }

  #problem(what: string): Error {
    return new Error(`at character ${this.#at + 1} there is ${what}`)
  }
}
