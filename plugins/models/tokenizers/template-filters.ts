/** Filters and tests that the template engine lacks or that differ from Python's. */
import { Environment } from '@huggingface/jinja'
import {
  checkLength,
  checkValue,
  MAX_ITEMS,
  RenderLimitExceeded,
  spendCharacters,
  spendSteps,
} from './render-budget.ts'
import { charged, itemsOf, METHODS, replace, SPLIT_LIMIT, searched, strip, text } from './template-methods.ts'
import {
  concat,
  isEqual,
  isList,
  isMapping,
  isString,
  isTrue,
  joinTexts,
  type Names,
  NO_NAMES,
  NONE,
  TemplateError,
  toArrayValue,
  toIntegerValue,
  toJson,
  toStringValue,
  toText,
  typeName,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** Maximum length of a `path.of.an.attribute`. */
const MAX_PATH = 1_024

type Filter = (operand: Value, places: readonly Value[], names: Names) => Value

function pathOf(value: Value | undefined): readonly string[] {
  const path = isString(value) || value?.type === 'IntegerValue' ? String(value.value) : text(value)
  if (path.length > MAX_PATH) throw new TemplateError('the name of an attribute is too long')
  return path.split('.')
}

function attribute(item: Value, path: readonly string[]): Value {
  let value = item
  for (const part of path) {
    const next = isMapping(value)
      ? value.value.get(part)
      : isList(value)
        ? value.value[Number(part)]
        : undefined
    if (next === undefined) return UNDEFINED
    value = next
  }
  return value
}

function passes(value: Value, [name, operand]: readonly Value[]): boolean {
  spendSteps()
  if (name === undefined) return isTrue(value)
  const test = TESTS.get(text(name))
  if (test === undefined) throw new TemplateError(`there is no test named ${text(name)}`)
  if (isString(value)) spendCharacters(value.value.length)
  return test(value, operand ?? UNDEFINED)
}

/** Python's `in`. @throws TemplateError if the value is not a container */
export function isMember(value: Value, set: Value): boolean {
  if (set.type === 'UndefinedValue') return false
  if (isString(set)) return set.value.includes(searched(set.value, value))
  if (isMapping(set)) return isString(value) && set.value.has(value.value)
  if (!isList(set)) throw new TemplateError(`nothing can be in a value of type ${typeName(set)}`)
  return set.value.some((item) => {
    spendSteps()
    return isEqual(item, value)
  })
}

type Test = (value: Value, operand: Value) => boolean

/** The engine's tests, and those that it lacks or that differ from Python's. */
const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ...(new Environment().tests as unknown as ReadonlyMap<string, Test>),
  ['iterable', (value) => isList(value) || isMapping(value) || isString(value)],
  ['float', (value) => value.type === 'FloatValue'],
  ['equalto', isEqual],
  ['eq', isEqual],
  ['==', isEqual],
  ['ne', (value, operand) => !isEqual(value, operand)],
  ['!=', (value, operand) => !isEqual(value, operand)],
  ['in', isMember],
])

/** Filters, by name. */
export const FILTERS: Readonly<Record<string, Filter>> = {
  tojson: toJsonFilter,
  string: (operand) => toStringValue(toText(operand)),
  trim: (operand, [letters]) => strip(toText(operand), letters, true, true),
  length: (operand) => toIntegerValue(lengthOf(operand)),
  count: (operand) => toIntegerValue(lengthOf(operand)),
  list: (operand) => toArrayValue(itemsOf(operand)),
  items: (operand) => toArrayValue(pairsOf(operand)),
  first: (operand) => itemsOf(operand)[0] ?? UNDEFINED,
  last: (operand) => itemsOf(operand).at(-1) ?? UNDEFINED,
  join: (operand, [separator, name], names) => {
    const by = name ?? names.get('attribute')
    const path = by === undefined ? [] : pathOf(by)
    const between = toText(separator ?? names.get('d') ?? toStringValue(''))
    return toStringValue(joinTexts(itemsOf(operand), between, (item) => toText(attribute(item, path))))
  },
  select: (operand, test) => toArrayValue(itemsOf(operand).filter((item) => passes(item, test))),
  reject: (operand, test) => toArrayValue(itemsOf(operand).filter((item) => !passes(item, test))),
  selectattr: (operand, [name, ...test]) => {
    const path = pathOf(name)
    return toArrayValue(itemsOf(operand).filter((item) => passes(attribute(item, path), test)))
  },
  rejectattr: (operand, [name, ...test]) => {
    const path = pathOf(name)
    return toArrayValue(itemsOf(operand).filter((item) => !passes(attribute(item, path), test)))
  },
  map: (operand, [name, ...places], names) => {
    const by = names.get('attribute')
    const path = by === undefined ? null : pathOf(by)
    const missing = names.get('default') ?? UNDEFINED
    const change = (item: Value): Value => {
      if (path === null) return callFilter(text(name), item, places)
      spendSteps()
      const found = attribute(item, path)
      return found.type === 'UndefinedValue' ? missing : found
    }
    return toArrayValue(itemsOf(operand).map(change))
  },
  upper: (operand) => toStringValue(toText(operand).toUpperCase()),
  lower: (operand) => toStringValue(toText(operand).toLowerCase()),
  capitalize: (operand) => METHODS.capitalize(toText(operand), [], NO_NAMES),
  title: (operand) => METHODS.title(toText(operand), [], NO_NAMES),
  replace: (operand, places, names) => replace(toText(operand), places, names),
  indent: indentFilter,
  unique: (operand) => {
    const seen = new Set<unknown>()
    return toArrayValue(
      itemsOf(operand).filter(({ value }) => {
        spendSteps()
        checkValue(value)
        return !seen.has(value) && seen.add(value)
      }),
    )
  },
  sort: (operand, [reverse, caseSensitive, by], names) => {
    const path = by ?? names.get('attribute') ?? NONE
    const parts = path.type === 'NullValue' ? [] : pathOf(path)
    return sorted(itemsOf(operand), (item) => attribute(item, parts), {
      isReversed: isTrue(reverse ?? names.get('reverse') ?? NONE),
      isCaseSensitive: isTrue(caseSensitive ?? names.get('case_sensitive') ?? NONE),
    })
  },
  dictsort: (operand, [caseSensitive, by, reverse], names) => {
    const place = text(by ?? names.get('by') ?? toStringValue('key')) === 'value' ? 1 : 0
    return sorted(pairsOf(operand), (pair) => (pair.value as Value[])[place], {
      isReversed: isTrue(reverse ?? names.get('reverse') ?? NONE),
      isCaseSensitive: isTrue(caseSensitive ?? names.get('case_sensitive') ?? NONE),
    })
  },
}

/** Keys and values of a mapping; none of other values. */
function pairsOf(value: Value): Value[] {
  return isMapping(value)
    ? [...value.value].map(([key, item]) => toArrayValue([toStringValue(key), item]))
    : []
}

interface SortOrder {
  readonly isReversed: boolean
  readonly isCaseSensitive: boolean
}

/** Sorts numbers and booleans, or strings, or missing values. @throws TemplateError for values of different types */
function sorted(items: readonly Value[], keyOf: (item: Value) => Value, order: SortOrder): Value {
  const keyed = items.map((item) => ({ item, key: sortKey(keyOf(item), order.isCaseSensitive) }))
  keyed.sort(({ key: a }, { key: b }) => {
    if (typeof a !== typeof b) throw new TemplateError('values of different types have no order')
    spendSteps()
    if (typeof a === 'string') spendCharacters(a.length)
    const sign = a < b ? -1 : a > b ? 1 : 0
    return order.isReversed ? -sign : sign
  })
  return toArrayValue(keyed.map(({ item }) => item))
}

function sortKey(key: Value, isCaseSensitive: boolean): string | number | boolean {
  if (isString(key)) {
    spendCharacters(key.value.length)
    return isCaseSensitive ? key.value : key.value.toLowerCase()
  }
  if (key.type === 'NullValue' || key.type === 'UndefinedValue') return false
  if (isList(key) || typeof key.value === 'object')
    throw new TemplateError(`values of type ${typeName(key)} have no order`)
  return Number(key.value)
}

/** As Jinja2's: lines but the first, and but those without text, begin with so many spaces or with a text. */
function indentFilter(operand: Value, places: readonly Value[], names: Names): Value {
  const [width, first, blank] = ['width', 'first', 'blank'].map(
    (name, place) => places[place] ?? names.get(name),
  )
  const size = Math.max(0, Number(width?.value ?? 4))
  if (!isString(width)) checkLength(size)
  const by = isString(width) ? width.value : ' '.repeat(size)
  const lines = toText(operand).split('\n', SPLIT_LIMIT)
  if (lines.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} lines`)
  let isFirst = true
  return toStringValue(
    joinTexts(lines, '\n', (line) => {
      const isPlain = isFirst ? !isTrue(first ?? NONE) : line === '' && !isTrue(blank ?? NONE)
      isFirst = false
      return isPlain ? line : concat(by, line)
    }),
  )
}

function callFilter(name: string, item: Value, places: readonly Value[]): Value {
  if (!Object.hasOwn(FILTERS, name)) throw new TemplateError(`there is no filter named ${name}`)
  spendSteps()
  const value = runFilter(name, item, places, NO_NAMES)
  checkValue(value.value)
  return value
}

function lengthOf(value: Value): number {
  // Of a string, Python counts characters and not UTF-16 units.
  if (isString(value)) {
    let length = 0
    for (let at = 0; at < value.value.length; length++)
      at += (value.value.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
    return length
  }
  if (isMapping(value)) return value.value.size
  return itemsOf(value).length
}

/** As transformers' own: `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`. */
function toJsonFilter(operand: Value, places: readonly Value[], names: Names): Value {
  const known = ['ensure_ascii', 'indent', 'separators', 'sort_keys']
  for (const name of names.keys())
    if (!known.includes(name)) throw new TemplateError(`tojson has no argument named ${name}`)
  const [ascii, indent, separators, sortKeys] = known.map(
    (name, place) => names.get(name) ?? places[place] ?? NONE,
  )
  const spaces = indent.type === 'NullValue' ? null : Math.min(Number(indent.value), 64)
  const [item, key] = isList(separators) ? separators.value.map(text) : [spaces === null ? ', ' : ',', ': ']
  return toStringValue(
    toJson(operand, {
      indent: spaces,
      itemSeparator: item,
      keySeparator: key,
      isAscii: isTrue(ascii),
      sortsKeys: isTrue(sortKeys),
    }),
  )
}

/** Calls a filter. @param name of one in `FILTERS` */
export function runFilter(name: string, operand: Value, places: readonly Value[], names: Names): Value {
  if (isString(operand)) spendCharacters(operand.value.length)
  return charged(FILTERS[name](operand, places, names))
}
