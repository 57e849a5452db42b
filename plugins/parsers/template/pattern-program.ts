/**
 * Patterns of response templates, compiled to programs that `PatternRun` runs in linear time. The patterns are Python's, of
 * the kind that says where a part of an answer begins: what would need a step back, or a look at what stands before, is
 * refused. They come with a model's files, which are strangers' words: no engine that steps back may run them.
 */

/** One thing to do; threads go on with the next one where nothing else is said. */
export type Instruction =
  | { readonly op: 'char'; readonly set: CharSet }
  /** The first way is preferred. */
  | { readonly op: 'split'; readonly first: number; readonly second: number }
  | { readonly op: 'jump'; readonly to: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'start' }
  /** `isLine`: also in front of a line end that is the last character. */
  | { readonly op: 'end'; readonly isLine: boolean }
  /** The match ends here: what follows is only looked at. */
  | { readonly op: 'ahead' }
  | { readonly op: 'match' }

export interface PatternProgram {
  readonly code: readonly Instruction[]
  /** Of named groups, in the order of their slots; group n has slots 2n and 2n + 1. */
  readonly groups: readonly string[]
  /** Any number of these may come first. */
  readonly lead: CharSet | null
  /** Finds the next character that a match has behind its lead; null when it may have none. Its `lastIndex` is the caller's. */
  readonly firsts: RegExp | null
  /** It has a `$`, which also stands in front of a last line end. */
  readonly asksForLineEnd: boolean
}

const MAX_CODE = 512
const MAX_PATTERN = 4_096
const MAX_NESTING = 32
const ASCII = 128

/** Which characters one place of a pattern takes. */
export class CharSet {
  /** A class for the `v` flag of regular expressions. */
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

/** What Python means by them. */
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

type Node =
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

/** Any of some texts, the longer ones first. @throws Error saying what is wrong */
export function compileLiterals(literals: readonly string[]): PatternProgram {
  const ordered = [...new Set(literals)].sort((a, b) => b.length - a.length)
  const nodes = ordered.map((text): Node => ({ kind: 'all', nodes: [...text].map(literal) }))
  return assemble({ kind: 'any', nodes }, [])
}

/** @throws Error saying what is wrong, or what is not known here */
export function compilePattern(pattern: string): PatternProgram {
  if (pattern.length > MAX_PATTERN) throw new Error(`it is longer than ${MAX_PATTERN} characters`)
  const parser = new PatternParser(pattern)
  const node = parser.parse()
  return assemble(node, parser.groups)
}

function literal(char: string): Node {
  return { kind: 'set', set: new CharSet(`[${escaped(char.codePointAt(0) as number)}]`) }
}

function escaped(code: number): string {
  return `\\u{${code.toString(16)}}`
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
      // A dot takes line ends here anyway.
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

  /** [-1, …] where nothing is repeated. */
  #counts(): readonly [number, number] {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY]
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY]
    if (this.#take('?')) return [0, 1]
    if (this.#peek() !== '{') return [-1, -1]
    const found = /^\{(\d{0,3})(?:(,)(\d{0,3}))?\}/.exec(this.#chars.slice(this.#at, this.#at + 9).join(''))
    // Not a count: the bracket stands for itself.
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

  /** Of an escape that stands for one character. */
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

  /** A character, or a class as it is written inside of another. */
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

function assemble(node: Node, groups: readonly string[]): PatternProgram {
  if (looksAhead(node, true)) throw new Error('it looks ahead in the middle: (?= may only be its end')
  const code: Instruction[] = []
  emit(node, code, groups)
  add(code, { op: 'match' })
  const asksForLineEnd = code.some((step) => step.op === 'end' && step.isLine)
  const [step, next] = code
  const hasLead = step.op === 'split' && next.op === 'char' && code[2]?.op === 'jump' && code[2].to === 0
  const behind = hasLead ? Math.max(step.first, step.second) : 0
  return { code, groups, lead: hasLead ? next.set : null, firsts: firstsOf(code, behind), asksForLineEnd }
}

/** Whether it looks ahead elsewhere than at its end. @param mayEnd it may look ahead at its end */
function looksAhead(node: Node, mayEnd: boolean): boolean {
  if (node.kind === 'ahead') return !mayEnd || looksAhead(node.node, false)
  if (node.kind === 'any') return node.nodes.some((part) => looksAhead(part, mayEnd))
  if (node.kind === 'all')
    return node.nodes.some((part, at) => looksAhead(part, mayEnd && at === node.nodes.length - 1))
  return (node.kind === 'group' || node.kind === 'repeat') && looksAhead(node.node, false)
}

function add(code: Instruction[], instruction: Instruction): number {
  if (code.length >= MAX_CODE) throw new Error(`it has more than ${MAX_CODE} steps`)
  return code.push(instruction) - 1
}

function emit(node: Node, code: Instruction[], groups: readonly string[]): void {
  if (node.kind === 'set') add(code, { op: 'char', set: node.set })
  else if (node.kind === 'start') add(code, { op: 'start' })
  else if (node.kind === 'end') add(code, { op: 'end', isLine: node.isLine })
  else if (node.kind === 'ahead') {
    add(code, { op: 'ahead' })
    emit(node.node, code, groups)
  } else if (node.kind === 'all') for (const part of node.nodes) emit(part, code, groups)
  else if (node.kind === 'any') emitAny(node.nodes, code, groups)
  else if (node.kind === 'repeat') emitRepeat(node, code, groups)
  else {
    const slot = groups.indexOf(node.name) * 2
    add(code, { op: 'save', slot })
    emit(node.node, code, groups)
    add(code, { op: 'save', slot: slot + 1 })
  }
}

function emitAny(nodes: readonly Node[], code: Instruction[], groups: readonly string[]): void {
  const ends: number[] = []
  for (const [at, node] of nodes.entries()) {
    const isLast = at === nodes.length - 1
    const split = isLast ? -1 : add(code, { op: 'jump', to: 0 })
    emit(node, code, groups)
    if (isLast) continue
    ends.push(add(code, { op: 'jump', to: 0 }))
    code[split] = { op: 'split', first: split + 1, second: code.length }
  }
  for (const end of ends) code[end] = { op: 'jump', to: code.length }
}

function emitRepeat(
  { node, min, max, isLazy }: Extract<Node, { kind: 'repeat' }>,
  code: Instruction[],
  groups: readonly string[],
): void {
  for (let times = 0; times < min; times++) emit(node, code, groups)
  const choice = (inside: number, behind: number): Instruction =>
    isLazy ? { op: 'split', first: behind, second: inside } : { op: 'split', first: inside, second: behind }
  if (max === Number.POSITIVE_INFINITY) {
    const split = add(code, { op: 'jump', to: 0 })
    emit(node, code, groups)
    add(code, { op: 'jump', to: split })
    code[split] = choice(split + 1, code.length)
    return
  }
  const splits: number[] = []
  for (let times = min; times < max; times++) {
    splits.push(add(code, { op: 'jump', to: 0 }))
    emit(node, code, groups)
  }
  for (const split of splits) code[split] = choice(split + 1, code.length)
}

function firstsOf(code: readonly Instruction[], from: number): RegExp | null {
  const seen = new Set<number>()
  const sources = new Set<string>()
  const open = [from]
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (seen.has(pc)) continue
    seen.add(pc)
    const step = code[pc]
    if (step.op === 'match') return null
    if (step.op === 'char') sources.add(step.set.source)
    else if (step.op === 'split') open.push(step.first, step.second)
    else open.push(step.op === 'jump' ? step.to : pc + 1)
  }
  // A set of no character matches never, and so does the pattern.
  return new RegExp(`[${[...sources].join('')}]`, 'gv')
}
