/** Formatting of texts: `'…' % values` and `'…'.format(…)`, with the conversions and specifications that templates use. */
import { checkLength, spendCharacters } from '../render-budget.ts'
import { floatText, toRepr, toText } from './to-text.ts'
import {
  Float,
  isInteger,
  isNumber,
  lookUp,
  type Names,
  numberOf,
  TemplateError,
  Tuple,
  type Value,
} from './values.ts'

/** Maximum width that a template can pad to. */
export const MAX_WIDTH = 100_000

const PERCENT = /%(?:\((\w*)\))?([-+ 0#]*)(\d*)(?:\.(\d+))?([a-zA-Z%])/g

/** @throws TemplateError for missing values, unknown conversions and values of other types */
export function formatPercent(format: string, values: Value): string {
  const places = values instanceof Tuple ? values.items : [values]
  let next = 0
  const text = format.replace(
    PERCENT,
    (whole, name: string | undefined, flags: string, width, digits, kind) => {
      if (kind === '%') return '%'
      const value =
        name === undefined ? places[next++] : values instanceof Map ? lookUp(values, name) : undefined
      if (value === undefined) throw new TemplateError(`there is no value for ${whole} of a format`)
      const body = withSign(converted(kind, value, digits), flags)
      return pad(
        body,
        Number(width),
        flags.includes('-') ? '<' : '>',
        flags.includes('0') && kind !== 's' ? '0' : ' ',
      )
    },
  )
  if (next < places.length && !(values instanceof Map))
    throw new TemplateError('not all arguments converted during string formatting')
  return checked(text)
}

const withSign = (text: string, flags: string) =>
  /^\d/.test(text) && flags.includes('+')
    ? `+${text}`
    : /^\d/.test(text) && flags.includes(' ')
      ? ` ${text}`
      : text

function converted(kind: string, value: Value, digits: string | undefined): string {
  if (kind === 's' || kind === 'r') {
    const text = kind === 's' ? toText(value) : toRepr(value)
    return digits === undefined ? text : text.slice(0, Number(digits))
  }
  if (!isNumber(value)) throw new TemplateError(`%${kind} format: a number is required`)
  return numberText(kind, value, digits)
}

function numberText(
  kind: string,
  value: Exclude<Value, string | null> & Parameters<typeof numberOf>[0],
  digits?: string,
) {
  const number = numberOf(value)
  switch (kind) {
    case 'd':
    case 'i':
      return isInteger(value) ? String(value) : String(Math.trunc(number))
    case 'f':
    case 'F':
      return fixed(number, Number(digits ?? 6))
    case 'e':
      return number.toExponential(Math.min(Number(digits ?? 6), 100)).replace(/e([+-])(\d)$/, 'e$10$2')
    case 'x':
      return Math.trunc(number).toString(16)
    case 'X':
      return Math.trunc(number).toString(16).toUpperCase()
    default:
      throw new TemplateError(`the conversion ${kind} of a format is not supported`)
  }
}

/** Digits that a number is written with. */
const MAX_DIGITS = 60

/** So many digits behind the point. Python rounds halves to even, JavaScript up. */
export function fixed(number: number, digits: number): string {
  if (!Number.isFinite(number)) return floatText(number)
  const count = Math.min(digits, MAX_DIGITS)
  const rounded = number.toFixed(count)
  const exact = number.toFixed(count + 40)
  const cut = exact.slice(0, exact.length - 40)
  if (!/^50*$/.test(exact.slice(-40))) return rounded
  return /[02468]\.?$/.test(cut) ? cut.replace(/\.$/, '') : rounded
}

function pad(text: string, width: number, align: string, fill: string): string {
  if (width > MAX_WIDTH) throw new TemplateError(`the width ${width} of a format is too large`)
  if (align === '<') return text.padEnd(width, fill)
  if (align === '^')
    return text.padStart(text.length + ((Math.max(0, width - text.length) / 2) | 0), fill).padEnd(width, fill)
  const sign = fill === '0' && /^[+-]/.test(text) ? text[0] : ''
  return sign + text.slice(sign.length).padStart(width - sign.length, fill)
}

const FIELD = /\{\{|\}\}|\{(\w*)((?:\.\w+|\[\w+\])*)(?:!([rs]))?(?::([^{}]*))?\}|[{}]/g
const SPECIFICATION = /^(?:(.)?([<>^]))?([+ ]?)(0?)(\d*)(,?)(?:\.(\d+))?([a-zA-Z%]?)$/su

/** @param member looks up members of fields such as `{0.name}` */
export function formatFields(
  format: string,
  places: readonly Value[],
  names: Names,
  member: (value: Value, name: string) => Value,
): string {
  let next = 0
  const text = format.replace(
    FIELD,
    (whole, name: string | undefined, path: string, conversion, specification) => {
      if (name === undefined) {
        if (whole.length === 2) return whole[0]
        throw new TemplateError(`single '${whole}' encountered in format string`)
      }
      const found = name === '' ? places[next++] : /^\d+$/.test(name) ? places[Number(name)] : names.get(name)
      if (found === undefined) throw new TemplateError(`there is no value for ${whole} of a format`)
      const value = (path.match(/\w+/g) ?? []).reduce(member, found)
      return specified(conversion === 'r' ? toRepr(value) : value, specification ?? '')
    },
  )
  return checked(text)
}

function specified(value: Value, specification: string): string {
  if (specification === '') return toText(value)
  const parts = SPECIFICATION.exec(specification)
  if (parts === null) throw new TemplateError(`invalid format specifier '${specification}'`)
  const [, fill, align, sign, zero, width, comma, digits, kind] = parts
  const isNumeric = isNumber(value) && typeof value !== 'boolean'
  let text: string
  if (!isNumeric) text = toText(value).slice(0, digits === undefined ? undefined : Number(digits))
  else if (kind === '%') text = `${fixed(numberOf(value) * 100, Number(digits ?? 6))}%`
  else if (kind !== '' || digits !== undefined || value instanceof Float)
    text =
      kind === '' && digits === undefined
        ? toText(value)
        : numberText(kind === '' ? 'f' : kind, value, digits)
  else text = toText(value)
  if (comma !== '') text = text.replace(/\B(?=(\d{3})+(?!\d))/g, ',')
  return pad(
    withSign(text, sign),
    Number(width),
    align ?? (isNumeric ? '>' : '<'),
    fill ?? (zero === '' ? ' ' : '0'),
  )
}

function checked(text: string): string {
  checkLength(text.length)
  spendCharacters(text.length)
  return text
}
