/** Texts of values: `str`, `repr` and `json.dumps` of Python. */
import { checkLength, spendCharacters, spendSteps } from '../render-budget.ts'
import {
  Float,
  isInteger,
  isList,
  isText,
  itemsOf,
  Markup,
  Namespace,
  Range,
  TemplateError,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts'

/** Text of a printed value. */
export function toText(value: Value): string {
  if (typeof value === 'string') return value
  if (value instanceof Markup) return value.text
  return value instanceof Undefined ? '' : toRepr(value)
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
  if (typeof value === 'string') return quote(value)
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (isInteger(value)) return String(value)
  if (value instanceof Float) return floatText(value.value)
  if (isList(value)) return `[${joinTexts(value, ', ', toRepr)}]`
  if (value instanceof Tuple)
    return value.items.length === 1
      ? `(${toRepr(value.items[0])},)`
      : `(${joinTexts(value.items, ', ', toRepr)})`
  if (value instanceof Map) return mappingText(value)
  if (value instanceof Markup) return `Markup(${quote(value.text)})`
  if (value instanceof Namespace) return `<Namespace ${mappingText(value.members)}>`
  if (value instanceof Undefined) return 'Undefined'
  if (value instanceof View) return `dict_${value.kind}([${joinTexts(itemsOf(value), ', ', toRepr)}])`
  if (value instanceof Range) {
    const stop = value.start + value.length * value.step
    return `range(${value.start}, ${stop}${value.step === 1 ? '' : `, ${value.step}`})`
  }
  return `<${typeName(value)}>`
}

function mappingText(members: ReadonlyMap<Value, Value>): string {
  return `{${joinTexts(members, ', ', ([key, item]) => `${toRepr(key)}: ${toRepr(item)}`)}}`
}

/** Characters that Python does not print as they are. */
const SPECIAL = /[\\'"\p{C}\p{Z}]/gu
const NAMED: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\\': '\\\\',
  ' ': ' ',
}

function quote(text: string): string {
  spendCharacters(text.length)
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const inner = text.replace(SPECIAL, (letter) => {
    if (letter === "'" || letter === '"') return letter === mark ? `\\${letter}` : letter
    const known = NAMED[letter]
    if (known !== undefined) return known
    const code = letter.codePointAt(0) ?? 0
    const [sign, digits] = code > 0xffff ? ['U', 8] : code > 0xff ? ['u', 4] : ['x', 2]
    return `\\${sign}${code.toString(16).padStart(digits, '0')}`
  })
  return mark + inner + mark
}

export function floatText(number: number): string {
  if (Number.isNaN(number)) return 'nan'
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf'
  if (Object.is(number, -0)) return '-0.0'
  const size = Math.abs(number)
  if (size !== 0 && (size >= 1e16 || size < 1e-4))
    return number.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  return Number.isInteger(number) ? `${number}.0` : String(number)
}

export interface JsonStyle {
  /** Spaces of a level; null keeps all on one line. */
  readonly indent: number | null
  readonly itemSeparator: string
  readonly keySeparator: string
  readonly isAscii: boolean
  readonly sortsKeys: boolean
}

/** Python's `json.dumps`. @throws TemplateError for values that are not JSON */
export function toJson(value: Value, style: JsonStyle, depth = 0): string {
  if (isText(value)) return jsonString(textOf(value), style.isAscii)
  if (typeof value === 'boolean' || value === null || isInteger(value)) return String(value)
  if (value instanceof Float) return jsonFloat(value.value)
  if (isList(value) || value instanceof Tuple)
    return wrap('[', itemsOf(value), ']', style, depth, (item) => toJson(item, style, depth + 1))
  if (!(value instanceof Map))
    throw new TemplateError(`Object of type ${typeName(value)} is not JSON serializable`)
  const entries = [...value].map(([key, item]) => [jsonKey(key), item] as const)
  if (style.sortsKeys) entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return wrap(
    '{',
    entries,
    '}',
    style,
    depth,
    ([key, item]) => jsonString(key, style.isAscii) + style.keySeparator + toJson(item, style, depth + 1),
  )
}

const jsonFloat = (number: number) =>
  Number.isNaN(number)
    ? 'NaN'
    : Number.isFinite(number)
      ? floatText(number)
      : number > 0
        ? 'Infinity'
        : '-Infinity'

function jsonKey(key: Value): string {
  if (isText(key)) return textOf(key)
  if (typeof key === 'boolean' || key === null || isInteger(key)) return String(key)
  if (key instanceof Float) return jsonFloat(key.value)
  throw new TemplateError(`keys must be str, int, float, bool or None, not ${typeName(key)}`)
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
