/** Writes one argument whose value is literal text; the text of a string is passed on as it arrives. @hot */
import type { JsonStyle } from '../scan/json-scanner.ts'
import { isCertainString, toTypedJson, type Untyped } from '../scan/typed-value.ts'
import type { CallOutput } from './call-output.ts'

export interface LiteralRules {
  /** Declared types; empty if there are none. */
  readonly types: readonly string[]
  readonly untyped: Untyped
  readonly style: JsonStyle
  /** Keeps the line breaks that other formats write around a value. */
  readonly isExact: boolean
}

/** Characters by which a value must be known to be a string; later it is converted at its end. */
const MAX_UNDECIDED = 256

const START = 0
const UNDECIDED = 1
const CONVERTED = 2
const STRING = 3

export class LiteralValue {
  readonly #out: CallOutput
  #rules: LiteralRules = { types: [], untyped: 'string', style: 'compact', isExact: true }
  #isExact = true
  #head = ''
  #state = START
  /** Text not yet passed on; of a string only what may be its last line break, or half of a character. */
  #held = ''

  constructor(out: CallOutput) {
    this.#out = out
  }

  /** @param head JSON in front of the value */
  begin(head: string, rules: LiteralRules): void {
    this.#head = head
    this.#rules = rules
    this.#held = ''
    this.#isExact = rules.isExact
    this.#state = START
  }

  /** Keeps line breaks around this value. Call before `push`. */
  keepBreaks(): void {
    this.#isExact = true
  }

  push(part: string): void {
    this.#held += part
    if (this.#state === START && !this.#removeFirstBreak()) return
    if (this.#state === UNDECIDED) this.#decide()
    if (this.#state === STRING) this.#write()
  }

  end(): void {
    const { types, untyped, style } = this.#rules
    const held = this.#isExact ? this.#held : withoutLastBreak(this.#held)
    this.#held = ''
    if (this.#state === STRING) this.#out.arguments(`${escaped(held)}"`)
    else this.#out.arguments(this.#head + toTypedJson(held, types, untyped, style))
  }

  /** @returns false if more text is needed */
  #removeFirstBreak(): boolean {
    const held = this.#held
    if (this.#isExact) return this.#undecided()
    if (held === '' || held === '\r') return false
    if (held[0] === '\n') this.#held = held.slice(1)
    else if (held.startsWith('\r\n')) this.#held = held.slice(2)
    return this.#undecided()
  }

  #undecided(): true {
    this.#state = UNDECIDED
    return true
  }

  #decide(): void {
    const { types, untyped } = this.#rules
    const start = this.#held.slice(0, MAX_UNDECIDED)
    if (isCertainString(start, types, untyped)) {
      this.#state = STRING
      this.#out.arguments(`${this.#head}"`)
    } else if (start.length === MAX_UNDECIDED) this.#state = CONVERTED
  }

  #write(): void {
    const held = this.#held
    let end = this.#isExact ? held.length : withoutLastBreak(held).length
    if (end === held.length && end > 0 && isIncomplete(held.charCodeAt(end - 1), this.#isExact)) end--
    this.#out.arguments(escaped(end === held.length ? held : held.slice(0, end)))
    this.#held = held.slice(end)
  }
}

/** The first half of a surrogate pair, or of a line break. */
function isIncomplete(code: number, isExact: boolean): boolean {
  return (code >= 0xd800 && code < 0xdc00) || (!isExact && code === 0x0d)
}

function withoutLastBreak(text: string): string {
  if (!text.endsWith('\n')) return text
  return text.slice(0, text.endsWith('\r\n') ? -2 : -1)
}

function escaped(text: string): string {
  return text === '' ? '' : JSON.stringify(text).slice(1, -1)
}
