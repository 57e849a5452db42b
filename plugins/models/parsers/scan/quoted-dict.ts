/** Reads `{key:value,…}` in which strings stand between marks and everything else is bare. */
import { DONE, isSpace, JsonScanner, MAX_DEPTH } from './json-scanner.ts'
import { itemSchema, memberSchema, typesOf } from './tool-types.ts'
import { ANY_JSON, toTypedJson } from './typed-value.ts'

/** @returns JSON text of one value; null if the text is no value, or more than one */
export function quotedValueToJson(text: string, mark: string, schema: unknown): string | null {
  // A bare value ends only with a bracket or comma.
  const reader = new DictReader(`${text}}`, mark)
  const json = reader.value(0, schema)
  return reader.isBeforeLast ? json : null
}

class DictReader {
  readonly #text: string
  readonly #mark: string
  #at = 0

  constructor(text: string, mark: string) {
    this.#text = text
    this.#mark = mark
  }

  get isBeforeLast(): boolean {
    this.#space()
    return this.#at === this.#text.length - 1
  }

  #object(depth: number, schemaOf: (key: string) => unknown): string | null {
    this.#at++
    const members: string[] = []
    while (true) {
      this.#space()
      if (this.#skip('}')) return `{${members.join(',')}}`
      const key = this.#key()
      if (key === null) return null
      const value = this.value(depth + 1, schemaOf(key))
      if (value === null) return null
      members.push(`${JSON.stringify(key)}:${value}`)
      this.#space()
      if (!this.#skip(',') && this.#text[this.#at] !== '}') return null
    }
  }

  #key(): string | null {
    const quoted = this.#quoted()
    if (quoted !== null) {
      this.#space()
      return this.#skip(':') ? quoted : null
    }
    const end = this.#text.indexOf(':', this.#at)
    if (end < 0) return null
    const written = this.#text.slice(this.#at, end).trim()
    if (written === '' || written.length > 1_024) return null
    this.#at = end + 1
    return written
  }

  value(depth: number, schema: unknown): string | null {
    if (depth > MAX_DEPTH) return null
    this.#space()
    const char = this.#text[this.#at]
    if (char === '{') return this.#object(depth, (key) => memberSchema(schema, key))
    if (char === '[') return this.#list(depth, itemSchema(schema))
    const quoted = this.#quoted()
    if (quoted !== null) return JSON.stringify(quoted)
    const literal = this.#literal()
    if (literal !== null) return literal
    const start = this.#at
    while (this.#at < this.#text.length && !',}]'.includes(this.#text[this.#at])) this.#at++
    if (this.#at === this.#text.length) return null
    return bareToJson(this.#text.slice(start, this.#at).trim(), typesOf(schema))
  }

  #list(depth: number, schema: unknown): string | null {
    this.#at++
    const items: string[] = []
    while (true) {
      this.#space()
      if (this.#skip(']')) return `[${items.join(',')}]`
      const item = this.value(depth + 1, schema)
      if (item === null) return null
      items.push(item)
      this.#space()
      if (!this.#skip(',') && this.#text[this.#at] !== ']') return null
    }
  }

  #quoted(): string | null {
    if (!this.#text.startsWith(this.#mark, this.#at)) return null
    const start = this.#at + this.#mark.length
    const end = this.#text.indexOf(this.#mark, start)
    if (end < 0) return null
    this.#at = end + this.#mark.length
    return this.#text.slice(start, end)
  }

  /** Some models write strings as in JSON. */
  #literal(): string | null {
    if (this.#text[this.#at] !== '"') return null
    const scanner = new JsonScanner('compact', this.#text.length)
    const end = scanner.feed(this.#text, this.#at, this.#text.length)
    if (scanner.status !== DONE) return null
    const start = this.#at
    this.#at = end
    this.#space()
    if (',}]'.includes(this.#text[this.#at] ?? 'x')) return scanner.take()
    this.#at = start
    return null
  }

  #space(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #skip(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }
}

/** Strings have marks, so a bare value is JSON unless the schema declares another type. */
function bareToJson(text: string, types: readonly string[]): string {
  if (text === '') return JSON.stringify('')
  return toTypedJson(text, types.length === 0 ? ANY_JSON : types, 'string', 'compact')
}
