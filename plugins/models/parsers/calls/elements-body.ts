/** Reads arguments written as elements named by their keys; declared strings are streamed. @hot */
import { FAILED, MAX_DEPTH, RUNNING } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { itemSchema, memberSchema, typesOf } from '../scan/tool-types.ts'
import { toTypedJson } from '../scan/typed-value.ts'
import type { CallOutput } from './call-output.ts'
import { ObjectBody } from './object-body.ts'

/** Stands before every tag, so that tags of the data are data. */
export const M3_PREFIX = ']<]minimax[>['

const PREFIX = new MarkerSearch([M3_PREFIX])
const MAX_TAG = 1_024

interface Tag {
  readonly name: string
  readonly isClosing: boolean
  readonly end: number
}

export class ElementsBody extends ObjectBody {
  /** Name of the element that contains the arguments. */
  readonly #parent: string
  readonly #keys = new Set<string>()
  /** Key of the current element; null between elements. */
  #key: string | null = null
  #isStreamed = false
  /** Text of the current element, if it is not streamed. */
  #gathered: string[] = []
  #depth = 0
  /** The last key, with its values, which become an array if the key is repeated. */
  #pendingKey: string | null = null
  #values: string[] = []

  constructor(out: CallOutput, tool: string, parent: string) {
    super(out, tool)
    this.#parent = parent
  }

  protected override readText(): boolean {
    const place = PREFIX.find(this.input, this.at)
    const isFound = PREFIX.found >= 0
    this.#write(this.input.slice(this.at, place))
    this.at = place
    if (!isFound || this.status !== RUNNING) return false
    const tag = readTag(this.input, place + M3_PREFIX.length)
    if (tag === null) return false
    if (tag.end < 0) return this.fail()
    if (this.#take(tag, this.input.slice(place, tag.end))) this.at = tag.end
    return true
  }

  /** Text of the current element. Text between elements is dropped. */
  #write(text: string): void {
    this.left -= text.length
    if (this.left < 0) this.status = FAILED
    else if (this.#key !== null && this.#isStreamed) this.value.push(text)
    else if (this.#key !== null) this.#gathered.push(text)
  }

  /** @returns false if the tag ends the arguments; the reader of the call consumes it */
  #take({ name, isClosing }: Tag, written: string): boolean {
    const isEnd = isClosing && name === this.#parent
    if (this.#key !== null && this.#isStreamed) {
      const isOwn = isClosing && name === this.#key
      if (!isOwn && !isEnd && (isClosing || !this.#isMissing(name))) {
        this.#write(written)
        return true
      }
      // Without its end mark, a string ends at the next declared parameter.
      this.value.end()
      this.#key = null
      if (isOwn) return true
    }
    if (this.#key !== null) this.#nest(isClosing, written)
    else if (isEnd) this.#end()
    else if (isClosing || name === '' || !this.#open(name, written)) this.status = FAILED
    return !isEnd
  }

  #isMissing(name: string): boolean {
    return !this.#keys.has(name) && this.out.options.tools.parameter(this.tool, name) !== undefined
  }

  #open(name: string, written: string): boolean {
    if (this.#keys.size === 0 && !this.out.start(this.tool)) return false
    const types = typesOf(this.out.options.tools.parameter(this.tool, name))
    this.#isStreamed = types.includes('string') && !types.includes('array') && !types.includes('object')
    if (this.#isStreamed || this.#pendingKey !== name) this.#flush()
    if (this.#isStreamed)
      this.value.begin(this.head(name), { types, untyped: 'infer', style: 'compact', isExact: false })
    else this.#gathered = [written]
    this.#keys.add(name)
    this.#key = name
    this.#depth = 1
    return true
  }

  #nest(isClosing: boolean, written: string): void {
    this.#write(written)
    this.#depth += isClosing ? -1 : 1
    const name = this.#key
    if (this.#depth > 0 || name === null) return
    const json = elementToJson(this.#gathered.join(''), this.out.options.tools.parameter(this.tool, name))
    if (json === null) this.status = FAILED
    else this.#values.push(json)
    this.#pendingKey = name
    this.#key = null
  }

  #flush(): void {
    const values = this.#values
    if (this.#pendingKey === null || values.length === 0) return
    const json = values.length === 1 ? values[0] : `[${values.join(',')}]`
    this.out.arguments(this.head(this.#pendingKey) + json)
    this.#values = []
    this.#pendingKey = null
  }

  #end(): void {
    if (this.#keys.size === 0 && !this.out.start(this.tool)) {
      this.status = FAILED
      return
    }
    this.#flush()
    this.complete()
  }
}

/** @returns null if more text is needed; an end below 0 if there is no tag */
function readTag(text: string, from: number): Tag | null {
  const window = text.slice(from, from + MAX_TAG)
  const end = window.indexOf('>')
  if (window !== '' && window[0] !== '<') return { name: '', isClosing: false, end: -1 }
  if (end < 0) return window.length === MAX_TAG ? { name: '', isClosing: false, end: -1 } : null
  const isClosing = window[1] === '/'
  return { name: window.slice(isClosing ? 2 : 1, end).trim(), isClosing, end: from + end + 1 }
}

interface Element {
  readonly key: string
  readonly children: Element[]
  text: string
}

/** @returns the JSON value of one element with its tags; null if its elements are not well nested */
function elementToJson(text: string, schema: unknown): string | null {
  const root = readElements(text)
  return root === null || root.children.length !== 1 ? null : jsonOf(root.children[0], schema)
}

function readElements(text: string): Element | null {
  const root: Element = { key: '', children: [], text: '' }
  const open: Element[] = [root]
  const parts = text.split(M3_PREFIX)
  // The first part is space before the first tag.
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i]
    const end = part.indexOf('>')
    if (part[0] !== '<' || end < 0) return null
    const isClosing = part[1] === '/'
    const key = part.slice(isClosing ? 2 : 1, end).trim()
    const current = open[open.length - 1]
    if (isClosing) {
      if (open.length === 1 || current.key !== key) return null
      open.pop()
    } else {
      if (key === '' || open.length > MAX_DEPTH) return null
      const child = { key, children: [], text: '' }
      current.children.push(child)
      open.push(child)
    }
    open[open.length - 1].text += part.slice(end + 1)
  }
  return open.length === 1 ? root : null
}

/** The values of a repeated key become an array. */
function objectOf(elements: readonly Element[], schemaOf: (key: string) => unknown, text: string): string {
  const members = new Map<string, string[]>()
  for (const element of elements) {
    const values = members.get(element.key)
    const json = jsonOf(element, schemaOf(element.key))
    if (values === undefined) members.set(element.key, [json])
    else values.push(json)
  }
  const stray = text.trim()
  if (stray !== '') members.set('$text', [JSON.stringify(stray)])
  const written = [...members].map(
    ([key, values]) => `${JSON.stringify(key)}:${values.length === 1 ? values[0] : `[${values.join(',')}]`}`,
  )
  return `{${written.join(',')}}`
}

function jsonOf(element: Element, schema: unknown): string {
  const { children, text } = element
  const types = typesOf(schema)
  if (children.length === 0) return toTypedJson(text, types, 'infer', 'compact')
  const isArray = types.includes('array') && children.every(({ key }) => key === 'item')
  if (isArray) return `[${children.map((child) => jsonOf(child, itemSchema(schema))).join(',')}]`
  return objectOf(children, (key) => memberSchema(schema, key), text)
}
