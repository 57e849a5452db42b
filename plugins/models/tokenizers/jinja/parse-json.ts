/** Parses JSON to values of templates as Python's `json.loads` does: keys keep their order, and numbers their type. */
import { Float, type Mapping, TemplateError, toInteger, type Value } from './values.ts'

/** Maximum nesting, as for request bodies. */
const MAX_DEPTH = 128

const TOKEN =
  /[ \t\n\r]*(?:([[\]{},:])|("(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\.)*")|(-?(?:0|[1-9]\d*))(\.\d+)?([eE][+-]?\d+)?|(true|false|null|NaN|-?Infinity)|$)/uy
const WORDS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['null', null],
  ['NaN', new Float(Number.NaN)],
  ['Infinity', new Float(Number.POSITIVE_INFINITY)],
  ['-Infinity', new Float(Number.NEGATIVE_INFINITY)],
])

/** @throws SyntaxError for text that is not JSON, TemplateError for text that is nested too deeply */
export function parseJson(text: string): Value {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.finish()
  return value
}

class Reader {
  readonly #text: string
  #at = 0
  /** Where the last token began. */
  #start = 0

  constructor(text: string) {
    this.#text = text
  }

  #next(): RegExpExecArray {
    TOKEN.lastIndex = this.#start = this.#at
    const found = TOKEN.exec(this.#text)
    if (found === null) throw this.#invalid()
    this.#at = TOKEN.lastIndex
    return found
  }

  #invalid(): SyntaxError {
    return new SyntaxError(`invalid JSON at character ${this.#start}`)
  }

  finish(): void {
    if (this.#next()[0].trim() !== '') throw this.#invalid()
  }

  value(depth: number, token = this.#next()): Value {
    const [, sign, string, integer, fraction, exponent, word] = token
    if (string !== undefined) return this.#string(string)
    if (integer !== undefined) {
      if (fraction !== undefined || exponent !== undefined)
        return new Float(Number(integer + (fraction ?? '') + (exponent ?? '')))
      return integer === '-0' ? 0 : toInteger(BigInt(integer))
    }
    if (word !== undefined) return WORDS.get(word) as Value
    if ((sign === '[' || sign === '{') && depth === MAX_DEPTH)
      throw new TemplateError(`JSON is nested more than ${MAX_DEPTH} levels deep`)
    if (sign === '[') return this.#list(depth)
    if (sign === '{') return this.#mapping(depth)
    throw this.#invalid()
  }

  #string(quoted: string): string {
    try {
      return JSON.parse(quoted) as string
    } catch {
      throw this.#invalid()
    }
  }

  #list(depth: number): Value {
    const items: Value[] = []
    for (let token = this.#next(); token[1] !== ']'; token = this.#next()) {
      items.push(this.value(depth + 1, token))
      const { 1: sign } = this.#next()
      if (sign === ']') return items
      if (sign !== ',') throw this.#invalid()
    }
    if (items.length > 0) throw this.#invalid()
    return items
  }

  #mapping(depth: number): Mapping {
    const members: Mapping = new Map()
    for (let token = this.#next(); token[1] !== '}'; token = this.#next()) {
      if (token[2] === undefined) throw this.#invalid()
      const key = this.#string(token[2])
      if (this.#next()[1] !== ':') throw this.#invalid()
      members.set(key, this.value(depth + 1))
      const { 1: sign } = this.#next()
      if (sign === '}') return members
      if (sign !== ',') throw this.#invalid()
    }
    if (members.size > 0) throw this.#invalid()
    return members
  }
}
