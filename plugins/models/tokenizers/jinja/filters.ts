/** Filters of Jinja2, with those that `transformers` adds. */
import { checkLength, MAX_ITEMS, RenderLimitExceeded, spendCharacters, spendSteps } from '../render-budget.ts'
import { fixed, formatPercent } from './format-text.ts'
import { attributeOf, center, charged, itemOf, replace, SPLIT_LIMIT, strip } from './methods.ts'
import { at, BINARY, order, toMarkup } from './operators.ts'
import { runTest } from './tests.ts'
import { joinTexts, toJson, toText } from './to-text.ts'
import {
  checkItems,
  concat,
  Float,
  integerOf,
  isEqual,
  isInteger,
  isNumber,
  isText,
  isTrue,
  itemsOf,
  Markup,
  type Names,
  numberOf,
  Stream,
  sizeOf,
  streamed,
  TemplateError,
  Tuple,
  textOf,
  toInteger,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts'

/** Maximum length of a `path.of.an.attribute`. */
const MAX_PATH = 1_024

type Filter = (operand: Value, places: readonly Value[], names: Names) => Value

/** The argument at a place or of a name. */
function argument(places: readonly Value[], names: Names, place: number, name: string): Value | undefined {
  return place < places.length ? places[place] : names.get(name)
}

type Path = readonly (string | number)[]

function pathOf(value: Value | undefined): Path {
  if (isInteger(value)) return [Number(value)]
  const path = textOf(value)
  if (path.length > MAX_PATH) throw new TemplateError('the name of an attribute is too long')
  return path.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
}

const member = (item: Value, path: Path): Value => path.reduce<Value>(itemOf, item)

const itemsIfAny = (operand: Value): Iterable<Value> => (isTrue(operand) ? streamed(operand) : [])

/** Selects items by a test of an attribute, or of themselves without one. */
function selection(isAttribute: boolean, isRejection: boolean): Filter {
  return (operand, places) => {
    const [name, ...rest] = isAttribute ? places.slice(1) : places
    const path = isAttribute ? pathOf(places[0]) : []
    return new Stream(
      (function* () {
        // Values without items, such as none, are no error here.
        for (const item of itemsIfAny(operand)) {
          const value = member(item, path)
          const passes = name === undefined ? isTrue(value) : runTest(textOf(name), value, rest)
          if (passes !== isRejection) yield item
        }
      })(),
    )
  }
}

function map(operand: Value, places: readonly Value[], names: Names): Value {
  const by = names.get('attribute')
  const otherwise = names.get('default')
  const path = by === undefined ? null : pathOf(by)
  const change = (item: Value): Value => {
    if (path === null) return runFilter(textOf(places[0]), item, places.slice(1), names)
    const found = member(item, path)
    return found instanceof Undefined ? (otherwise === undefined ? found : otherwise) : found
  }
  return new Stream(
    (function* () {
      for (const item of itemsIfAny(operand)) yield change(item)
    })(),
  )
}

/** As filters compare texts: without case unless it is asked for. */
function comparable(value: Value, isCaseSensitive: boolean): Value {
  if (!isText(value) || isCaseSensitive) return value
  spendCharacters(textOf(value).length)
  return textOf(value).toLowerCase()
}

interface SortOrder {
  readonly isReversed: boolean
  readonly isCaseSensitive: boolean
}

function sorted(items: readonly Value[], keyOf: (item: Value) => Value, by: SortOrder): Value[] {
  const keyed = items.map((item) => ({ item, key: comparable(keyOf(item), by.isCaseSensitive) }))
  const sign = by.isReversed ? -1 : 1
  keyed.sort(({ key: a }, { key: b }) => sign * order(a, b))
  return keyed.map(({ item }) => item)
}

function sort(operand: Value, places: readonly Value[], names: Names): Value {
  const by = argument(places, names, 2, 'attribute') ?? null
  const paths = by === null ? [[]] : isInteger(by) ? [pathOf(by)] : textOf(by).split(',').map(pathOf)
  const isCaseSensitive = isTrue(argument(places, names, 1, 'case_sensitive') ?? false)
  const keys = (item: Value): readonly Value[] =>
    paths.map((path) => comparable(member(item, path), isCaseSensitive))
  return sorted(itemsOf(operand), (item) => (paths.length === 1 ? keys(item)[0] : keys(item)), {
    isReversed: isTrue(argument(places, names, 0, 'reverse') ?? false),
    isCaseSensitive: true,
  })
}

/** The lowest or highest item. */
function extreme(sign: number): Filter {
  return (operand, places, names) => {
    const by = argument(places, names, 1, 'attribute') ?? null
    const path = by === null ? [] : pathOf(by)
    const isCaseSensitive = isTrue(argument(places, names, 0, 'case_sensitive') ?? false)
    const key = (item: Value) => comparable(member(item, path), isCaseSensitive)
    const items = itemsOf(operand)
    if (items.length === 0) return new Undefined('No aggregated item, sequence was empty.')
    return items.reduce((best, item) => (sign * order(key(item), key(best)) > 0 ? item : best))
  }
}

function unique(operand: Value, places: readonly Value[], names: Names): Value {
  const by = argument(places, names, 1, 'attribute') ?? null
  const path = by === null ? [] : pathOf(by)
  const isCaseSensitive = isTrue(argument(places, names, 0, 'case_sensitive') ?? false)
  const texts = new Set<string>()
  const others: Value[] = []
  const isNew = (item: Value): boolean => {
    spendSteps()
    const key = comparable(member(item, path), isCaseSensitive)
    if (typeof key === 'string') return !texts.has(key) && texts.add(key) !== undefined
    return !others.some((known) => isEqual(known, key)) && others.push(key) > 0
  }
  return itemsOf(operand).filter(isNew)
}

/** A group of `groupby`, which is a tuple whose items have names. */
class Group extends Tuple {}

function groupBy(operand: Value, places: readonly Value[], names: Names): Value {
  const path = pathOf(argument(places, names, 0, 'attribute'))
  const otherwise = argument(places, names, 1, 'default')
  const isCaseSensitive = isTrue(argument(places, names, 2, 'case_sensitive') ?? false)
  const keyOf = (item: Value): Value => {
    const found = member(item, path)
    return found instanceof Undefined && otherwise !== undefined ? otherwise : found
  }
  const groups: { key: Value; items: Value[] }[] = []
  for (const item of sorted(itemsOf(operand), keyOf, { isReversed: false, isCaseSensitive })) {
    const last = groups.at(-1)
    const isSame = (a: Value, b: Value) =>
      isEqual(comparable(a, isCaseSensitive), comparable(b, isCaseSensitive))
    if (last !== undefined && isSame(last.key, keyOf(item))) last.items.push(item)
    else groups.push({ key: keyOf(item), items: [item] })
  }
  return groups.map(({ key, items }) => new Group([key, items]))
}

function sum(operand: Value, places: readonly Value[], names: Names): Value {
  const by = argument(places, names, 0, 'attribute') ?? null
  const path = by === null ? [] : pathOf(by)
  const add = BINARY.get('+') as (a: Value, b: Value) => Value
  return itemsOf(operand).reduce<Value>(
    (total, item) => add(total, member(item, path)),
    argument(places, names, 1, 'start') ?? 0,
  )
}

/** Lists of so many items; the last one is filled if a value is given. */
function batch(operand: Value, places: readonly Value[], names: Names): Value {
  const size = Math.max(1, integerOf(argument(places, names, 0, 'linecount')))
  const fill = argument(places, names, 1, 'fill_with') ?? null
  checkItems(size)
  const items = itemsOf(operand)
  return Array.from({ length: Math.ceil(items.length / size) }, (_, row) => {
    const part = items.slice(row * size, (row + 1) * size)
    return fill === null ? part : [...part, ...Array<Value>(size - part.length).fill(fill)]
  })
}

function round(operand: Value, places: readonly Value[], names: Names): Value {
  const digits = integerOf(argument(places, names, 0, 'precision') ?? 0)
  const method = textOf(argument(places, names, 1, 'method') ?? 'common')
  const number = numberOfText(operand)
  const scale = 10 ** digits
  if (method === 'ceil' || method === 'floor') return new Float(Math[method](number * scale) / scale)
  if (digits >= 0) return new Float(Number(fixed(number, digits)))
  return new Float(Number(fixed(number * scale, 0)) / scale)
}

function numberOfText(value: Value): number {
  if (isNumber(value)) return numberOf(value)
  throw new TemplateError(`a number is expected, got ${typeName(value)}`)
}

const INTEGER = /^\s*[-+]?\d+(?:_\d+)*\s*$/

function int(operand: Value, places: readonly Value[], names: Names): Value {
  const otherwise = argument(places, names, 0, 'default') ?? 0
  const base = integerOf(argument(places, names, 1, 'base') ?? 10)
  if (isText(operand)) {
    const text = textOf(operand)
    if (base !== 10) {
      const parsed = Number.parseInt(text.replace(/^\s*0[xob]/i, ''), base)
      return Number.isNaN(parsed) ? otherwise : parsed
    }
    if (INTEGER.test(text) && text.length < MAX_PATH)
      return toInteger(BigInt(text.replaceAll('_', '').trim().replace('+', '')))
    const number = floatOf(text)
    return Number.isFinite(number) ? toInteger(BigInt(Math.trunc(number))) : otherwise
  }
  if (!isNumber(operand)) return otherwise
  if (isInteger(operand)) return operand
  const number = numberOf(operand)
  return Number.isFinite(number) ? toInteger(BigInt(Math.trunc(number))) : otherwise
}

function floatOf(text: string): number {
  const trimmed = text.trim()
  if (/^[-+]?(?:inf|infinity)$/i.test(trimmed)) return trimmed.startsWith('-') ? -Infinity : Infinity
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(trimmed) ? Number(trimmed) : Number.NaN
}

/** Filters, by name. */
const FILTERS: Readonly<Record<string, Filter>> = {
  tojson: toJsonFilter,
  string: (operand) => (isText(operand) ? operand : toText(operand)),
  trim: (operand, places, names) => strip(toText(operand), argument(places, names, 0, 'chars'), true, true),
  length: lengthOf,
  count: lengthOf,
  list: (operand) => [...itemsOf(operand)],
  items: (operand) => {
    if (operand instanceof Undefined) return []
    if (!(operand instanceof Map)) throw new TemplateError('Can only get item pairs from a mapping.')
    return new Stream(itemsOf(new View('items', operand)).values())
  },
  first: (operand) => {
    for (const item of streamed(operand)) return item
    return new Undefined('No first item, sequence was empty.')
  },
  last: (operand) => {
    const item = at(operand, -1)
    return item === undefined ? new Undefined('No last item, sequence was empty.') : item
  },
  join: (operand, places, names) => {
    const by = argument(places, names, 1, 'attribute') ?? null
    const path = by === null ? [] : pathOf(by)
    const between = toText(argument(places, names, 0, 'd') ?? '')
    return joinTexts(streamed(operand), between, (item) => toText(member(item, path)))
  },
  select: selection(false, false),
  reject: selection(false, true),
  selectattr: selection(true, false),
  rejectattr: selection(true, true),
  map,
  default: defaultTo,
  d: defaultTo,
  upper: (operand) => toText(operand).toUpperCase(),
  lower: (operand) => toText(operand).toLowerCase(),
  capitalize: (operand) => {
    const text = toText(operand)
    return text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase()
  },
  title: (operand) =>
    toText(operand).replace(
      /([-\s({[<]+)|([^-\s({[<])([^-\s({[<]*)/gu,
      (_, space, first, rest) => space ?? first.toUpperCase() + rest.toLowerCase(),
    ),
  replace: (operand, places, names) =>
    replace(
      toText(operand),
      [places[0] ?? names.get('old') ?? '', places[1] ?? names.get('new') ?? '', ...places.slice(2)],
      names,
    ),
  indent: indentFilter,
  unique,
  sort,
  min: extreme(-1),
  max: extreme(1),
  sum,
  groupby: groupBy,
  batch,
  reverse: (operand) =>
    isText(operand)
      ? [...textOf(operand)].reverse().join('')
      : new Stream(itemsOf(operand).toReversed().values()),
  dictsort: (operand, places, names) => {
    if (!(operand instanceof Map))
      throw new TemplateError(`dictsort takes a mapping, got ${typeName(operand)}`)
    const place = textOf(argument(places, names, 1, 'by') ?? 'key') === 'value' ? 1 : 0
    return sorted(itemsOf(new View('items', operand)), (pair) => (pair as Tuple).items[place], {
      isReversed: isTrue(argument(places, names, 2, 'reverse') ?? false),
      isCaseSensitive: isTrue(argument(places, names, 0, 'case_sensitive') ?? false),
    })
  },
  attr: (operand, [name]) => attributeOf(operand, textOf(name)),
  abs: (operand) => {
    const number = numberOfText(operand)
    return operand instanceof Float
      ? new Float(Math.abs(number))
      : typeof operand === 'bigint' && operand < 0n
        ? -operand
        : isInteger(operand) && operand > 0
          ? operand
          : Math.abs(number)
  },
  int,
  float: (operand, places, names) => {
    const otherwise = argument(places, names, 0, 'default') ?? new Float(0)
    const number = isText(operand)
      ? floatOf(textOf(operand))
      : isNumber(operand)
        ? numberOf(operand)
        : Number.NaN
    return Number.isNaN(number) ? otherwise : new Float(number)
  },
  round,
  format: (operand, places, names) =>
    formatPercent(toText(operand), names.size > 0 ? new Map<Value, Value>(names) : new Tuple(places)),
  center: (operand, places, names) =>
    center(toText(operand), integerOf(argument(places, names, 0, 'width') ?? 80)),
  wordcount: (operand) => toText(operand).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  safe: (operand) => toMarkupText(operand),
  escape: (operand) => toMarkup(isText(operand) ? operand : toText(operand)),
  e: (operand) => toMarkup(isText(operand) ? operand : toText(operand)),
}

function toMarkupText(operand: Value): Value {
  return operand instanceof Markup ? operand : new Markup(toText(operand))
}

function defaultTo(operand: Value, places: readonly Value[], names: Names): Value {
  const isMissing =
    operand instanceof Undefined ||
    (isTrue(argument(places, names, 1, 'boolean') ?? false) && !isTrue(operand))
  if (!isMissing) return operand
  const value = argument(places, names, 0, 'default_value')
  return value === undefined ? '' : value
}

function lengthOf(operand: Value): Value {
  const size = sizeOf(operand)
  if (size === null) throw new TemplateError(`object of type '${typeName(operand)}' has no len()`)
  return size
}

/** As Jinja2's: lines but the first, and but those without text, begin with so many spaces or with a text. */
function indentFilter(operand: Value, places: readonly Value[], names: Names): Value {
  const [width, first, blank] = ['width', 'first', 'blank'].map((name, place) =>
    argument(places, names, place, name),
  )
  const size = isText(width) ? 0 : Math.max(0, integerOf(width ?? 4))
  checkLength(size)
  const by = isText(width) ? textOf(width) : ' '.repeat(size)
  const lines = toText(operand).split('\n', SPLIT_LIMIT)
  if (lines.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} lines`)
  let isFirst = true
  return joinTexts(lines, '\n', (line) => {
    const isPlain = isFirst ? !isTrue(first ?? false) : line === '' && !isTrue(blank ?? false)
    isFirst = false
    return isPlain ? line : concat(by, line)
  })
}

/** As that of `transformers`: `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`. */
function toJsonFilter(operand: Value, places: readonly Value[], names: Names): Value {
  const known = ['ensure_ascii', 'indent', 'separators', 'sort_keys']
  for (const name of names.keys())
    if (!known.includes(name)) throw new TemplateError(`tojson has no argument named ${name}`)
  const [ascii, indent, separators, sortKeys] = known.map(
    (name, place) => argument(places, names, place, name) ?? null,
  )
  const spaces = indent === null ? null : Math.min(integerOf(indent), 64)
  const [item, key] =
    separators === null ? [spaces === null ? ', ' : ',', ': '] : itemsOf(separators).map(textOf)
  return toJson(operand, {
    indent: spaces,
    itemSeparator: item,
    keySeparator: key,
    isAscii: isTrue(ascii),
    sortsKeys: isTrue(sortKeys),
  })
}

export const isFilter = (name: string): boolean => Object.hasOwn(FILTERS, name)

/** Calls a filter. @throws TemplateError if there is none of that name */
export function runFilter(name: string, operand: Value, places: readonly Value[], names: Names): Value {
  if (!isFilter(name)) throw new TemplateError(`there is no filter named ${name}`)
  spendSteps()
  if (isText(operand)) spendCharacters(textOf(operand).length)
  return charged(FILTERS[name](operand, places, names))
}
