/** Values of the template engine, printed and compared as in Python. */
import { Environment } from '@huggingface/jinja'
import { checkLength, spendCharacters, spendSteps } from './render-budget.ts'

/** The template rejects a request or fails; the message is for the client. */
export class TemplateError extends Error {}

/** A value of the template engine. */
export interface Value {
  readonly type: string
  readonly value: unknown
  __bool__(): { readonly value: boolean }
  toString(): string
}
export type EngineValue = ReturnType<Environment['lookupVariable']>
type Maker = new (value: unknown) => Value

// The classes of the engine's values are not exported; its environment makes one of each.
const scope = new Environment()
const classOf = (name: string, sample: unknown) => scope.set(name, sample).constructor as unknown as Maker
const StringMaker = classOf('s', '')
const IntegerMaker = classOf('i', 1)
const FloatMaker = classOf('d', 0.5)
const BooleanMaker = classOf('b', true)
const ArrayMaker = classOf('a', [])
const MappingMaker = classOf('o', {})
const FunctionMaker = classOf('f', () => null)
export const NONE: Value = scope.set('n', null)
export const UNDEFINED: Value = scope.lookupVariable('none of the above')

export const toStringValue = (text: string): Value => new StringMaker(text)
export const toIntegerValue = (number: number): Value => new IntegerMaker(number)
const TRUE = new BooleanMaker(true)
const FALSE = new BooleanMaker(false)
export const toBooleanValue = (truth: boolean): Value => (truth ? TRUE : FALSE)
export const toArrayValue = (items: readonly Value[]): Value => new ArrayMaker(items)
export const toMappingValue = (members: ReadonlyMap<string, Value>): Value => new MappingMaker(members)
export const toFunctionValue = (call: (args: readonly Value[]) => Value): Value => new FunctionMaker(call)

export const isString = (value: Value | undefined): value is Value & { value: string } =>
  value?.type === 'StringValue'
export const isList = (value: Value | undefined): value is Value & { value: Value[] } =>
  value?.type === 'ArrayValue' || value?.type === 'TupleValue'
export const isMapping = (value: Value | undefined): value is Value & { value: Map<string, Value> } =>
  value?.type === 'ObjectValue'

export function isTrue(value: Value): boolean {
  if (value.type === 'BooleanValue') return value.value as boolean
  if (value.type === 'StringValue') return value.value !== ''
  if (value.type === 'UndefinedValue' || value.type === 'NullValue') return false
  return value.__bool__().value
}

/** Arguments by name. */
export type Names = ReadonlyMap<string, Value>
export const NO_NAMES: Names = new Map()

/** Text of a printed value. */
export function toText(value: Value): string {
  if (isString(value)) return value.value
  return value.type === 'UndefinedValue' ? '' : toRepr(value)
}

/** Concatenates two texts; V8 copies neither. @throws RenderLimitExceeded */
export function concat(left: string, right: string): string {
  checkLength(left.length + right.length)
  return left + right
}

/** Joins the text of each item; stops when the result exceeds the limit. @throws RenderLimitExceeded */
export function joinTexts<T>(items: Iterable<T>, separator: string, toPart: (item: T) => string): string {
  const parts: string[] = []
  let length = 0
  for (const item of items) {
    spendSteps()
    const part = toPart(item)
    length += part.length + (parts.length === 0 ? 0 : separator.length)
    checkLength(length)
    parts.push(part)
  }
  spendCharacters(length)
  return parts.join(separator)
}

/** Python's `repr`. */
export function toRepr(value: Value): string {
  switch (value.type) {
    case 'StringValue':
      return quote(value.value as string)
    case 'BooleanValue':
      return value.value === true ? 'True' : 'False'
    case 'NullValue':
      return 'None'
    case 'FloatValue':
      return floatText(value.value as number)
    case 'ArrayValue':
      return `[${joinTexts(value.value as Value[], ', ', toRepr)}]`
    case 'TupleValue': {
      const items = value.value as Value[]
      return items.length === 1 ? `(${toRepr(items[0])},)` : `(${joinTexts(items, ', ', toRepr)})`
    }
    case 'ObjectValue':
      return mappingText(value.value as ReadonlyMap<string, Value>)
    case 'NamespaceValue':
      return `<Namespace ${mappingText(value.value as ReadonlyMap<string, Value>)}>`
    case 'FunctionValue':
      return '<function>'
    default:
      return String(value.value)
  }
}

function mappingText(members: ReadonlyMap<string, Value>): string {
  return `{${joinTexts(members, ', ', ([key, item]) => `${quote(key)}: ${toRepr(item)}`)}}`
}

function quote(text: string): string {
  spendCharacters(text.length)
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  let quoted = mark
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0
    if (letter === mark || letter === '\\') quoted += `\\${letter}`
    else if (letter === '\n') quoted += '\\n'
    else if (letter === '\r') quoted += '\\r'
    else if (letter === '\t') quoted += '\\t'
    else if (code < 0x20 || (code >= 0x7f && code < 0xa1))
      quoted += `\\x${code.toString(16).padStart(2, '0')}`
    else quoted += letter
  }
  return quoted + mark
}

function floatText(number: number): string {
  if (Number.isNaN(number)) return 'nan'
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf'
  if (Object.is(number, -0)) return '-0.0'
  const size = Math.abs(number)
  if (size !== 0 && (size >= 1e16 || size < 1e-4))
    return number.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  return Number.isInteger(number) ? `${number}.0` : String(number)
}

const isNumber = (value: Value) => ['IntegerValue', 'FloatValue', 'BooleanValue'].includes(value.type)

/** Python's `==`. */
export function isEqual(a: Value, b: Value): boolean {
  if (isString(a) && isString(b)) {
    if (a.value.length !== b.value.length) return false
    spendCharacters(a.value.length)
    return a.value === b.value
  }
  // Nested lists may contain the same list many times.
  spendSteps()
  if (isNumber(a) && isNumber(b)) return Number(a.value) === Number(b.value)
  if (isList(a) && isList(b)) {
    const others = b.value
    return (
      a.type === b.type &&
      a.value.length === others.length &&
      a.value.every((item, i) => isEqual(item, others[i]))
    )
  }
  if (isMapping(a) && isMapping(b)) {
    if (a.value.size !== b.value.size) return false
    for (const [key, item] of a.value) {
      const other = b.value.get(key)
      if (other === undefined || !isEqual(item, other)) return false
    }
    return true
  }
  return a.type === b.type && a.value === b.value
}

/** Python's `+`. @throws Error for unsupported operand types */
export function sum(a: Value, b: Value): Value {
  if (isString(a) && isString(b)) return toStringValue(concat(a.value, b.value))
  if (isList(a) && isList(b)) {
    spendCharacters(a.value.length + b.value.length)
    return toArrayValue(a.value.concat(b.value))
  }
  if (!isNumber(a) || !isNumber(b))
    throw new Error(`cannot add a value of type ${typeName(b)} to one of type ${typeName(a)}`)
  const total = Number(a.value) + Number(b.value)
  return a.type === 'FloatValue' || b.type === 'FloatValue' ? new FloatMaker(total) : toIntegerValue(total)
}

/** As messages name it, such as `String`. */
export function typeName(value: Value | undefined): string {
  return value?.type.replace('Value', '') ?? 'Undefined'
}

export interface JsonStyle {
  /** Spaces a level; null keeps all on one line. */
  readonly indent: number | null
  readonly itemSeparator: string
  readonly keySeparator: string
  readonly isAscii: boolean
  readonly sortsKeys: boolean
}

/** Python's `json.dumps`. @throws Error for values that are not JSON */
export function toJson(value: Value, style: JsonStyle, depth = 0): string {
  switch (value.type) {
    case 'StringValue':
      return jsonString(value.value as string, style.isAscii)
    case 'BooleanValue':
    case 'IntegerValue':
      return String(value.value)
    case 'FloatValue':
      return floatText(value.value as number)
    case 'NullValue':
      return 'null'
    case 'ArrayValue':
    case 'TupleValue': {
      return wrap('[', value.value as Value[], ']', style, depth, (item) => toJson(item, style, depth + 1))
    }
    case 'ObjectValue':
    case 'KeywordArgumentsValue': {
      const entries = [...(value.value as Map<string, Value>)]
      if (style.sortsKeys) entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      const member = ([key, item]: [string, Value]) =>
        jsonString(key, style.isAscii) + style.keySeparator + toJson(item, style, depth + 1)
      return wrap('{', entries, '}', style, depth, member)
    }
    default:
      throw new Error(`a value of type ${typeName(value)} is not JSON serializable`)
  }
}

function wrap<T>(
  open: string,
  items: readonly T[],
  close: string,
  style: JsonStyle,
  depth: number,
  toPart: (item: T) => string,
): string {
  if (items.length === 0) return open + close
  if (style.indent === null) return open + joinTexts(items, style.itemSeparator, toPart) + close
  const line = `\n${' '.repeat(style.indent * (depth + 1))}`
  const inner = joinTexts(items, style.itemSeparator + line, toPart)
  return `${open}${line}${inner}\n${' '.repeat(style.indent * depth)}${close}`
}

function jsonString(text: string, isAscii: boolean): string {
  spendCharacters(text.length)
  const json = JSON.stringify(text)
  if (!isAscii) return json
  return json.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
