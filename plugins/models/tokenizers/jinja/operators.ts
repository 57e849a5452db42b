/** Operators, comparisons and subscripts, as Python evaluates them. */
import { checkLength, spendCharacters, spendSearch, spendSteps } from '../render-budget.ts'
import { formatPercent } from './format-text.ts'
import {
  charactersOf,
  checkItems,
  concat,
  Float,
  type Integer,
  isEqual,
  isInteger,
  isList,
  isNumber,
  isText,
  itemsOf,
  lookUp,
  Markup,
  numberOf,
  TemplateError,
  Tuple,
  textOf,
  toInteger,
  typeName,
  Undefined,
  type Value,
} from './values.ts'

const escaped = (value: string) =>
  value.replace(
    /[&<>'"]/g,
    (letter) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', "'": '#39', '"': '#34' }[letter]};`,
  )

/** Text with the characters of HTML escaped, unless it counts as escaped. */
export const toMarkup = (value: string | Markup): Markup =>
  value instanceof Markup ? value : new Markup(escaped(value))

/** @throws TemplateError for undefined values, which have no operators */
function requireDefined(value: Value): void {
  if (value instanceof Undefined) throw new TemplateError(value.reason)
}

function unsupported(operator: string, a: Value, b: Value): never {
  requireDefined(a)
  requireDefined(b)
  throw new TemplateError(
    `unsupported operand type(s) for ${operator}: '${typeName(a)}' and '${typeName(b)}'`,
  )
}

function add(a: Value, b: Value): Value {
  if (typeof a === 'string' && typeof b === 'string') return concat(a, b)
  if (isNumber(a) && isNumber(b)) return arithmetic('+', a, b)
  if (isText(a) && isText(b)) return new Markup(concat(toMarkup(a).text, toMarkup(b).text))
  if (isList(a) && isList(b)) return joined(a, b)
  if (a instanceof Tuple && b instanceof Tuple) return new Tuple(joined(a.items, b.items))
  return unsupported('+', a, b)
}

function joined(a: readonly Value[], b: readonly Value[]): Value[] {
  checkItems(a.length + b.length)
  spendCharacters(a.length + b.length)
  return a.concat(b)
}

function multiply(a: Value, b: Value): Value {
  if (isNumber(a) && isNumber(b)) return arithmetic('*', a, b)
  const [given, times] = isInteger(b) || typeof b === 'boolean' ? [a, b] : [b, a]
  if (!isInteger(times) && typeof times !== 'boolean') return unsupported('*', a, b)
  const count = Math.max(0, Number(times))
  if (isText(given)) {
    checkLength(textOf(given).length * count)
    const text = textOf(given).repeat(count)
    spendCharacters(text.length)
    return given instanceof Markup ? new Markup(text) : text
  }
  if (!isList(given) && !(given instanceof Tuple)) return unsupported('*', a, b)
  const items = itemsOf(given)
  checkItems(items.length * count)
  spendCharacters(items.length * count)
  const repeated = Array.from({ length: count }, () => items).flat()
  return isList(given) ? repeated : new Tuple(repeated)
}

type Number = Integer | boolean | Float

function arithmetic(operator: string, a: Number, b: Number): Value {
  if (operator === '/') return new Float(numberOf(a) / divisor(numberOf(b)))
  if (a instanceof Float || b instanceof Float)
    return new Float(floatResult(operator, numberOf(a), numberOf(b)))
  const exact = integerResult(operator, Number(a), Number(b))
  if (typeof a !== 'bigint' && typeof b !== 'bigint' && Number.isSafeInteger(exact)) return exact
  if (operator === '**' && Number(b) < 0) return new Float(Number(a) ** Number(b))
  return toInteger(bigResult(operator, BigInt(a), BigInt(b)))
}

function divisor<T extends number | bigint>(value: T): T {
  // biome-ignore lint/suspicious/noDoubleEquals: both kinds of zero
  if (value == 0) throw new TemplateError('division by zero')
  return value
}

function floatResult(operator: string, a: number, b: number): number {
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  if (operator === '*') return a * b
  if (operator === '**') return a ** b
  const quotient = Math.floor(a / divisor(b))
  return operator === '//' ? quotient : a - b * quotient
}

/** The result may be inexact. */
function integerResult(operator: string, a: number, b: number): number {
  if (operator === '**' && Number(b) < 0) return Number.NaN
  return floatResult(operator, a, b) + 0
}

/** Largest exponent; results are limited by their bits. */
const MAX_EXPONENT = 4_096

function bigResult(operator: string, a: bigint, b: bigint): bigint {
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  if (operator === '*') return a * b
  if (operator === '**') {
    if (b > MAX_EXPONENT) throw new TemplateError(`the exponent ${b} is too large`)
    return a ** b
  }
  const rest = a % divisor(b)
  // Python rounds down, and the remainder has the sign of the divisor.
  const isOff = rest !== 0n && rest < 0n !== b < 0n
  if (operator === '//') return a / b - (isOff ? 1n : 0n)
  return isOff ? rest + b : rest
}

function numeric(operator: string): (a: Value, b: Value) => Value {
  return (a, b) => (isNumber(a) && isNumber(b) ? arithmetic(operator, a, b) : unsupported(operator, a, b))
}

export const BINARY: ReadonlyMap<string, (a: Value, b: Value) => Value> = new Map<
  string,
  (a: Value, b: Value) => Value
>([
  ['+', add],
  ['*', multiply],
  ['-', numeric('-')],
  ['/', numeric('/')],
  ['//', numeric('//')],
  ['**', numeric('**')],
  [
    '%',
    (a, b) => {
      if (!isText(a)) return isNumber(a) && isNumber(b) ? arithmetic('%', a, b) : unsupported('%', a, b)
      const text = formatPercent(textOf(a), b)
      return a instanceof Markup ? new Markup(text) : text
    },
  ],
])

/** `-value` or `+value`. */
export function signed(operator: string, value: Value): Value {
  if (!isNumber(value)) {
    requireDefined(value)
    throw new TemplateError(`bad operand type for unary ${operator}: '${typeName(value)}'`)
  }
  if (operator === '+') return typeof value === 'boolean' ? Number(value) : value
  if (value instanceof Float) return new Float(-value.value)
  return typeof value === 'bigint' ? toInteger(-value) : 0 - Number(value)
}

/** Negative, zero or positive. @throws TemplateError for values that have no order */
export function order(a: Value, b: Value, operator = '<'): number {
  spendSteps()
  if (typeof a === 'bigint' && typeof b === 'bigint') return a < b ? -1 : a > b ? 1 : 0
  if (isNumber(a) && isNumber(b)) return numberOf(a) - numberOf(b)
  if (isText(a) && isText(b)) {
    const [left, right] = [textOf(a), textOf(b)]
    spendCharacters(Math.min(left.length, right.length))
    return left < right ? -1 : left > right ? 1 : 0
  }
  if ((isList(a) && isList(b)) || (a instanceof Tuple && b instanceof Tuple)) {
    const [left, right] = [itemsOf(a), itemsOf(b)]
    const place = left.findIndex((item, i) => i >= right.length || !isEqual(item, right[i]))
    if (place < 0 || place >= right.length) return left.length - right.length
    return order(left[place], right[place], operator)
  }
  requireDefined(a)
  requireDefined(b)
  throw new TemplateError(
    `'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`,
  )
}

/** Python's `in`. @throws TemplateError if the value is not a container */
export function isMember(value: Value, set: Value): boolean {
  if (isText(set)) {
    if (!isText(value))
      throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(value)}`)
    spendSearch(textOf(set), textOf(value))
    return textOf(set).includes(textOf(value))
  }
  if (set instanceof Map) return lookUp(set, value) !== undefined
  return itemsOf(set).some((item) => {
    spendSteps()
    return isEqual(item, value)
  })
}

export function compare(operator: string, a: Value, b: Value): boolean {
  switch (operator) {
    case '==':
      return isEqual(a, b)
    case '!=':
      return !isEqual(a, b)
    case 'in':
      return isMember(a, b)
    case 'not in':
      return !isMember(a, b)
    case '<':
      return order(a, b, operator) < 0
    case '<=':
      return order(a, b, operator) <= 0
    case '>':
      return order(a, b, operator) > 0
    default:
      return order(a, b, operator) >= 0
  }
}

/** The item at a place, counted from the end if it is negative; undefined beyond the ends. */
export function at(value: Value, place: number): Value | undefined {
  if (isList(value)) return value.at(place)
  if (value instanceof Tuple) return value.items.at(place)
  return isText(value)
    ? Array.prototype.at.call(charactersOf(textOf(value)), place)
    : itemsOf(value).at(place)
}

/** @param bounds start, stop and step; null where one is omitted. @throws TemplateError for values without slices */
export function slice(value: Value, [from, to, by]: readonly (number | null)[]): Value {
  const step = by ?? 1
  if (step === 0) throw new TemplateError('slice step cannot be zero')
  if (!isText(value) && !isList(value) && !(value instanceof Tuple)) {
    requireDefined(value)
    throw new TemplateError(`'${typeName(value)}' object has no slices`)
  }
  const items = isText(value) ? charactersOf(textOf(value)) : itemsOf(value)
  const { length } = items
  const clip = (place: number, low: number, high: number) =>
    Math.min(Math.max(place < 0 ? place + length : place, low), high)
  const [low, high] = step > 0 ? [0, length] : [-1, length - 1]
  const start = from === null ? (step > 0 ? low : high) : clip(from, low, high)
  const stop = to === null ? (step > 0 ? high : low) : clip(to, low, high)
  const count = Math.max(0, (stop - start) / step)
  let picked: string | readonly Value[]
  if (step === 1) {
    spendCharacters(count)
    picked = items.slice(start, start + count)
  } else {
    spendSteps(count)
    const list: Value[] = []
    for (let place = start; step > 0 ? place < stop : place > stop; place += step) list.push(items[place])
    picked = list
  }
  if (!isText(value))
    return isList(value) ? (picked as readonly Value[]) : new Tuple(picked as readonly Value[])
  const text = typeof picked === 'string' ? picked : picked.join('')
  return value instanceof Markup ? new Markup(text) : text
}
