/**
 * Values of chat templates. Strings, integers, booleans and none are JavaScript's, lists are arrays and mappings are maps;
 * Python's other types have classes here.
 */
import { checkLength, checkValue, MAX_ITEMS, RenderLimitExceeded, spendSteps } from '../render-budget.ts'

/** The template rejects a request or fails; the message is for the client. */
export class TemplateError extends Error {}

export type Mapping = Map<Value, Value>
export type Names = ReadonlyMap<string, Value>
export type Callable = (places: readonly Value[], names: Names) => Value
/** An integer is a number if that is exact, else a bigint. */
export type Integer = number | bigint
export type Value =
  | string
  | Integer
  | boolean
  | null
  | readonly Value[]
  | Mapping
  | Callable
  | Float
  | Tuple
  | Markup
  | Undefined
  | Namespace
  | View
  | Range
  | Stream
  | Members

export const NO_NAMES: Names = new Map()

export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

export class Tuple {
  readonly items: readonly Value[]
  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** Text that counts as escaped; other text is escaped when it is added. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export class Undefined {
  /** Why there is no value, as errors state it. */
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

export class Namespace {
  readonly members: Map<string, Value>
  constructor(members: Map<string, Value>) {
    this.members = members
  }
}

/** Keys, values or items of a mapping. */
export class View {
  readonly kind: 'keys' | 'values' | 'items'
  readonly of: Mapping
  constructor(kind: View['kind'], of: Mapping) {
    this.kind = kind
    this.of = of
  }
}

export class Range {
  readonly start: number
  readonly step: number
  readonly length: number
  constructor(start: number, stop: number, step: number) {
    this.start = start
    this.step = step
    this.length = Math.max(0, Math.ceil((stop - start) / step))
  }
}

/** Values that are computed when they are read, once. */
export class Stream {
  readonly values: Iterator<Value>
  constructor(values: Iterator<Value>) {
    this.values = values
  }
}

/** An object of the engine, such as `loop`. */
export abstract class Members {
  abstract member(name: string): Value | undefined
}

export const isText = (value: Value | undefined): value is string | Markup =>
  typeof value === 'string' || value instanceof Markup
export const isList = (value: Value | undefined): value is readonly Value[] => Array.isArray(value)
export const isInteger = (value: Value | undefined): value is Integer =>
  typeof value === 'number' || typeof value === 'bigint'
export const isNumber = (value: Value | undefined): value is Integer | boolean | Float =>
  isInteger(value) || typeof value === 'boolean' || value instanceof Float

/** Name of Python's type. */
export function typeName(value: Value | undefined): string {
  if (value === null) return 'NoneType'
  if (typeof value === 'string') return 'str'
  if (isInteger(value)) return 'int'
  if (typeof value === 'boolean') return 'bool'
  if (isList(value)) return 'list'
  if (value instanceof Map) return 'dict'
  if (value instanceof View) return `dict_${value.kind}`
  if (value instanceof Stream) return 'generator'
  if (typeof value === 'function') return 'function'
  return value === undefined ? 'nothing' : value.constructor.name.toLowerCase()
}

/** @throws TemplateError for values that are not text */
export function textOf(value: Value | undefined): string {
  if (typeof value === 'string') return value
  if (value instanceof Markup) return value.text
  throw new TemplateError(`a string is expected, got ${typeName(value)}`)
}

/** @throws TemplateError for values that are not integers */
export function integerOf(value: Value | undefined): number {
  if (isInteger(value) || typeof value === 'boolean') return Number(value)
  throw new TemplateError(`an integer is expected, got ${typeName(value)}`)
}

/** Python's `float(value)` of a number. */
export const numberOf = (value: Integer | boolean | Float): number =>
  value instanceof Float ? value.value : Number(value)

/** The smaller of the two representations. @throws RenderLimitExceeded for integers of more than 4096 bits */
export function toInteger(value: bigint): Integer {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  if (BigInt.asIntN(4_096, value) !== value) throw new RenderLimitExceeded('4096 bits of an integer')
  return value
}

export function isTrue(value: Value): boolean {
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return value !== ''
  if (value === null || value instanceof Undefined) return false
  if (isInteger(value)) return Number(value) !== 0
  if (isList(value)) return value.length > 0
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Markup) return value.text !== ''
  return sizeOf(value) !== 0
}

/** Number of items; null for values without a length. */
export function sizeOf(value: Value): number | null {
  if (typeof value === 'string') return characterCount(value)
  if (isList(value)) return value.length
  if (value instanceof Map) return value.size
  if (value instanceof Tuple) return value.items.length
  if (value instanceof Markup) return characterCount(value.text)
  if (value instanceof View) return value.of.size
  if (value instanceof Range) return value.length
  return value instanceof Undefined ? 0 : null
}

const SURROGATE = /[\ud800-\udfff]/

/** Python counts characters and not UTF-16 units. */
function characterCount(text: string): number {
  if (!SURROGATE.test(text)) return text.length
  let length = 0
  for (let at = 0; at < text.length; length++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return length
}

/** Characters of a text, in a form that has indices. @throws RenderLimitExceeded */
export function charactersOf(text: string): string | readonly string[] {
  if (!SURROGATE.test(text)) return text
  checkItems(text.length)
  return [...text]
}

export function checkItems(count: number): void {
  if (count > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
}

export const isIterable = (value: Value): boolean => value instanceof Stream || sizeOf(value) !== null

/** Values of an iteration. @throws TemplateError for values that are not iterable, RenderLimitExceeded */
export function itemsOf(value: Value | undefined): readonly Value[] {
  if (isList(value)) return value
  if (value instanceof Tuple) return value.items
  if (value instanceof Map) return [...value.keys()]
  if (value instanceof View) return viewItems(value)
  if (value instanceof Undefined) return []
  if (value instanceof Stream) {
    const items: Value[] = []
    for (const item of streamed(value)) {
      items.push(item)
      checkItems(items.length)
    }
    return items
  }
  if (value instanceof Range) {
    spendSteps(value.length / 4)
    return Array.from({ length: value.length }, (_, place) => value.start + place * value.step)
  }
  if (isText(value)) {
    const text = textOf(value)
    checkItems(text.length)
    spendSteps(text.length / 4)
    return [...text]
  }
  throw new TemplateError(`'${typeName(value)}' object is not iterable`)
}

/** As `itemsOf`; a stream is read value by value. */
export function* streamed(value: Value | undefined): Generator<Value, void> {
  if (!(value instanceof Stream)) {
    yield* itemsOf(value)
    return
  }
  for (;;) {
    spendSteps()
    const { done, value: item } = value.values.next()
    if (done === true) return
    checkValue(item)
    yield item
  }
}

function viewItems({ kind, of }: View): Value[] {
  if (kind === 'keys') return [...of.keys()]
  if (kind === 'values') return [...of.values()]
  spendSteps(of.size / 4)
  return [...of].map((entry) => new Tuple(entry))
}

/** The value of a key; undefined without one. Keys that are equal numbers are the same key, as in Python. */
export function lookUp(mapping: Mapping, key: Value): Value | undefined {
  if (typeof key === 'string') return mapping.get(key)
  if (isText(key)) return mapping.get(textOf(key))
  return mapping.get(sameKey(mapping, key))
}

export function setKey(mapping: Mapping, key: Value, value: Value): void {
  mapping.set(typeof key === 'string' ? key : sameKey(mapping, key), value)
}

function sameKey(mapping: Mapping, key: Value): Value {
  if (mapping.has(key)) return key
  if (isList(key) || key instanceof Map) throw new TemplateError(`unhashable type: '${typeName(key)}'`)
  for (const known of mapping.keys()) {
    spendSteps()
    if (typeof known !== 'string' && isEqual(known, key)) return known
  }
  return key
}

/** Python's `==`. @throws RenderLimitExceeded */
export function isEqual(a: Value, b: Value): boolean {
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length !== b.length) return false
    spendSteps(a.length / 64)
    return a === b
  }
  // Nested lists may contain the same list many times.
  spendSteps()
  if (isNumber(a) && isNumber(b))
    return typeof a === 'bigint' && typeof b === 'bigint' ? a === b : numberOf(a) === numberOf(b)
  if (isText(a) && isText(b)) return textOf(a) === textOf(b)
  if (isList(a) && isList(b)) return areEqual(a, b)
  if (a instanceof Tuple && b instanceof Tuple) return areEqual(a.items, b.items)
  if (a instanceof Map && b instanceof Map) {
    if (a.size !== b.size) return false
    for (const [key, item] of a) {
      const other = lookUp(b, key)
      if (other === undefined || !isEqual(item, other)) return false
    }
    return true
  }
  return a === b || (a instanceof Undefined && b instanceof Undefined)
}

const areEqual = (a: readonly Value[], b: readonly Value[]) =>
  a.length === b.length && a.every((item, place) => isEqual(item, b[place]))

/** Concatenates two texts; V8 copies neither. @throws RenderLimitExceeded */
export function concat(left: string, right: string): string {
  checkLength(left.length + right.length)
  return left + right
}

/** A mapping of a JSON value, whose objects are maps or plain objects. Integers beyond 2^53 are bigints in it. */
export function fromJson(given: unknown): Value {
  switch (typeof given) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return given
    case 'number':
      return Number.isSafeInteger(given) && !Object.is(given, -0) ? given : new Float(given)
    case 'object':
      if (given === null || given instanceof Float) return given
      if (Array.isArray(given)) return given.map(fromJson)
      return new Map(
        given instanceof Map
          ? [...given].map(([key, value]) => [key as Value, fromJson(value)])
          : Object.entries(given).flatMap(([key, value]) =>
              value === undefined ? [] : [[key, fromJson(value)]],
            ),
      )
    default:
      return null
  }
}
