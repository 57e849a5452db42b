/** Filters and string methods that the template engine lacks or that differ from Python's. */
import {
  checkLength,
  checkValue,
  MAX_ITEMS,
  RenderLimitExceeded,
  spendCharacters,
  spendSearch,
  spendSteps,
} from './render-budget.ts'
import {
  concat,
  isEqual,
  isList,
  isMapping,
  isString,
  isTrue,
  joinTexts,
  NONE,
  splitArguments,
  toArrayValue,
  toBooleanValue,
  toIntegerValue,
  toJson,
  toStringValue,
  toText,
  typeName,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** The template rejects a request or fails; the message is for the client. */
export class TemplateError extends Error {}

/** Maximum width that a template can pad to. */
const MAX_WIDTH = 100_000

/** Maximum length of a `path.of.an.attribute`. */
const MAX_PATH = 1_024

/** Characters that are spaces for Python's `strip` but not for JavaScript's `trim`. */
const PYTHON_SPACES = ['\u001c', '\u001d', '\u001e', '\u001f', '\u0085']

type Method = (text: string, places: readonly Value[], names: ReadonlyMap<string, Value>) => Value
type Filter = (operand: Value, places: readonly Value[], names: ReadonlyMap<string, Value>) => Value

const text = (value: Value | undefined): string => {
  if (!isString(value))
    throw new TemplateError(`a string is expected, got ${value === undefined ? 'nothing' : toText(value)}`)
  return value.value
}
const strings = (items: readonly string[]): Value => {
  if (items.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
  return toArrayValue(items.map(toStringValue))
}
/** One more than allowed, so that an excess is detected. */
const SPLIT_LIMIT = MAX_ITEMS + 1

/** The part that a method searches in the text. */
function searched(given: string, value: Value | undefined): string {
  const part = text(value)
  spendSearch(given, part)
  return part
}

/** Text, cut where the part is; at most so many times, from the start. */
function split(given: string, part: Value | undefined, most = -1): string[] {
  const isWords = part === undefined || part.type === 'NullValue'
  const separator = isWords ? '' : searched(given, part)
  if (!isWords && separator === '') throw new TemplateError('empty separator')
  if (most < 0) {
    if (!isWords) return given.split(separator, SPLIT_LIMIT)
    const words = given.trim()
    return words === '' ? [] : words.split(/\s+/, SPLIT_LIMIT)
  }
  const pieces: string[] = []
  let rest = isWords ? given.trimStart() : given
  while (pieces.length < Math.min(most, MAX_ITEMS)) {
    const [found, at] = isWords ? nextSpaces(rest) : [separator, rest.indexOf(separator)]
    if (at < 0) break
    spendSteps()
    pieces.push(rest.slice(0, at))
    rest = rest.slice(at + found.length)
  }
  return isWords && rest === '' ? pieces : [...pieces, rest]
}

function nextSpaces(given: string): [string, number] {
  const found = /\s+/.exec(given)
  return found === null ? ['', -1] : [found[0], found.index]
}

function replace(given: string, [from, to, places]: readonly Value[], names: ReadonlyMap<string, Value>) {
  const [part, by] = [searched(given, from), text(to)]
  const most = Number((places ?? names.get('count'))?.value ?? -1)
  const limit = most < 0 ? Number.POSITIVE_INFINITY : most
  let result = ''
  let start = 0
  let count = 0
  for (let at = given.indexOf(part); at >= 0 && count < limit; count++) {
    spendSteps()
    result += given.slice(start, at) + by
    checkLength(result.length)
    start = at + part.length
    // An empty part stands before each character and behind the last one.
    const step = part !== '' ? 0 : (given.codePointAt(start) ?? 0) > 0xffff ? 2 : 1
    at = start + step > given.length ? -1 : given.indexOf(part, start + step)
  }
  return toStringValue(result + given.slice(start))
}

/** Whether the text starts, or ends, with the part or with one of several. */
function hasEnd(given: string, parts: Value | undefined, matches: (part: string) => boolean): Value {
  const list = isList(parts) ? parts.value : [parts]
  return toBooleanValue(
    list.some((part) => {
      spendCharacters(Math.min(text(part).length, given.length))
      return matches(text(part))
    }),
  )
}

function count(given: string, part: string): number {
  if (part === '') return given.length + 1
  let found = 0
  for (let at = given.indexOf(part); at >= 0; at = given.indexOf(part, at + part.length)) found++
  return found
}

function stripSet(letters: Value | undefined): (letter: string) => boolean {
  if (letters === undefined || letters.type === 'NullValue')
    return (letter) => letter.trim() === '' || PYTHON_SPACES.includes(letter)
  const set = new Set(text(letters))
  return (letter) => set.has(letter)
}

function strip(given: string, letters: Value | undefined, atStart: boolean, atEnd: boolean): Value {
  const isStripped = stripSet(letters)
  let start = 0
  let end = given.length
  if (atStart) while (start < end && isStripped(given[start])) start++
  if (atEnd) while (end > start && isStripped(given[end - 1])) end--
  return toStringValue(given.slice(start, end))
}

const pad = (given: string, width: Value | undefined, letter: string, isLeft: boolean) => {
  const size = Math.min(Number(width?.value ?? 0), MAX_WIDTH)
  return toStringValue(isLeft ? given.padStart(size, letter) : given.padEnd(size, letter))
}

const matches =
  (pattern: RegExp): Method =>
  (given) =>
    toBooleanValue(pattern.test(given))

/** Methods of strings, by name. */
export const METHODS: Readonly<Record<string, Method>> = {
  strip: (given, [letters]) => strip(given, letters, true, true),
  lstrip: (given, [letters]) => strip(given, letters, true, false),
  rstrip: (given, [letters]) => strip(given, letters, false, true),
  removeprefix: (given, [part]) =>
    toStringValue(given.startsWith(text(part)) ? given.slice(text(part).length) : given),
  removesuffix: (given, [part]) =>
    toStringValue(
      text(part) !== '' && given.endsWith(text(part)) ? given.slice(0, -text(part).length) : given,
    ),
  startswith: (given, [parts]) => hasEnd(given, parts, (part) => given.startsWith(part)),
  endswith: (given, [parts]) => hasEnd(given, parts, (part) => given.endsWith(part)),
  replace: (given, places, names) => replace(given, places, names),
  find: (given, [part]) => toIntegerValue(given.indexOf(searched(given, part))),
  rfind: (given, [part]) => toIntegerValue(given.lastIndexOf(searched(given, part))),
  count: (given, [part]) => toIntegerValue(count(given, searched(given, part))),
  join: (given, [items]) => toStringValue(joinTexts(itemsOf(items), given, text)),
  split: (given, [part, most], names) =>
    strings(split(given, part ?? names.get('sep'), Number((most ?? names.get('maxsplit'))?.value ?? -1))),
  splitlines: (given) =>
    strings(given === '' ? [] : given.replace(/(\r\n|\r|\n)$/, '').split(/\r\n|\r|\n/, SPLIT_LIMIT)),
  partition: (given, [part]) => cut(given, given.indexOf(searched(given, part)), text(part), [given, '', '']),
  rpartition: (given, [part]) =>
    cut(given, given.lastIndexOf(searched(given, part)), text(part), ['', '', given]),
  rsplit: (given, [part, most]) => {
    const pieces = split(given, part)
    const limit = Number(most?.value ?? -1)
    if (limit < 0 || pieces.length <= limit + 1) return strings(pieces)
    const rest = pieces.splice(0, pieces.length - limit)
    return strings([rest.join(part === undefined || part.type === 'NullValue' ? ' ' : text(part)), ...pieces])
  },
  capitalize: (given) => toStringValue(given.slice(0, 1).toUpperCase() + given.slice(1).toLowerCase()),
  title: (given) =>
    toStringValue(
      given.replace(/\p{L}+/gu, (word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()),
    ),
  isdigit: matches(/^\p{Nd}+$/u),
  isnumeric: matches(/^\p{N}+$/u),
  isalpha: matches(/^\p{L}+$/u),
  isalnum: matches(/^[\p{L}\p{N}]+$/u),
  isspace: matches(/^\s+$/),
  zfill: (given, [width]) =>
    given.startsWith('-')
      ? toStringValue(`-${given.slice(1).padStart(Math.min(Number(width?.value), MAX_WIDTH) - 1, '0')}`)
      : pad(given, width, '0', true),
  ljust: (given, [width]) => pad(given, width, ' ', false),
  rjust: (given, [width]) => pad(given, width, ' ', true),
}

function cut(given: string, at: number, part: string, otherwise: readonly string[]): Value {
  return strings(at < 0 ? otherwise : [given.slice(0, at), part, given.slice(at + part.length)])
}

/** Items of a list, keys of a mapping, characters of a text. @throws RenderLimitExceeded */
function itemsOf(value: Value | undefined): readonly Value[] {
  if (isList(value)) return value.value
  if (isMapping(value)) return [...value.value.keys()].map(toStringValue)
  if (isString(value)) {
    if (value.value.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
    spendSteps(value.value.length / 4)
    return [...value.value].map(toStringValue)
  }
  if (value === undefined || value.type === 'UndefinedValue') return []
  throw new TemplateError(`a list is expected, got ${toText(value)}`)
}

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
  if (!Object.hasOwn(TESTS, text(name))) throw new TemplateError(`there is no test named ${text(name)}`)
  return TESTS[text(name)](value, operand ?? UNDEFINED)
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

const TESTS: Readonly<Record<string, (value: Value, operand: Value) => boolean>> = {
  defined: (value) => value.type !== 'UndefinedValue',
  undefined: (value) => value.type === 'UndefinedValue',
  none: (value) => value.type === 'NullValue',
  string: (value) => isString(value),
  mapping: (value) => isMapping(value),
  sequence: (value) => isList(value) || isMapping(value) || isString(value),
  iterable: (value) => isList(value) || isMapping(value) || isString(value),
  number: (value) => value.type === 'IntegerValue' || value.type === 'FloatValue',
  integer: (value) => value.type === 'IntegerValue',
  float: (value) => value.type === 'FloatValue',
  boolean: (value) => value.type === 'BooleanValue',
  true: (value) => value.value === true,
  false: (value) => value.value === false,
  equalto: isEqual,
  eq: isEqual,
  '==': isEqual,
  ne: (value, operand) => !isEqual(value, operand),
  '!=': (value, operand) => !isEqual(value, operand),
  in: isMember,
}

/** Filters, by name. */
export const FILTERS: Readonly<Record<string, Filter>> = {
  tojson: toJsonFilter,
  string: (operand) => toStringValue(toText(operand)),
  trim: (operand, [letters]) => strip(toText(operand), letters, true, true),
  length: (operand) => toIntegerValue(lengthOf(operand)),
  count: (operand) => toIntegerValue(lengthOf(operand)),
  list: (operand) => toArrayValue(itemsOf(operand)),
  items: (operand) =>
    toArrayValue(
      isMapping(operand)
        ? [...operand.value].map(([key, item]) => toArrayValue([toStringValue(key), item]))
        : [],
    ),
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
  capitalize: (operand) => callMethod('capitalize', operand, []),
  title: (operand) => callMethod('title', operand, []),
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
    const pairs = isMapping(operand)
      ? [...operand.value].map(([key, item]) => [toStringValue(key), item] as const)
      : []
    const { value } = sorted(pairs.map(toArrayValue), (pair) => (pair.value as Value[])[place], {
      isReversed: isTrue(reverse ?? names.get('reverse') ?? NONE),
      isCaseSensitive: isTrue(caseSensitive ?? names.get('case_sensitive') ?? NONE),
    })
    return toArrayValue(value as Value[])
  },
}

interface SortOrder {
  readonly isReversed: boolean
  readonly isCaseSensitive: boolean
}

/** Numbers and booleans, or texts, or what is of no value. @throws TemplateError for a mixture */
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
function indentFilter(operand: Value, places: readonly Value[], names: ReadonlyMap<string, Value>): Value {
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
  checkValue(item.value)
  const value = charged(FILTERS[name](item, places, new Map()))
  checkValue(value.value)
  return value
}

function callMethod(name: string, item: Value, places: readonly Value[]): Value {
  return METHODS[name](toText(item), places, new Map())
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
function toJsonFilter(operand: Value, places: readonly Value[], names: ReadonlyMap<string, Value>): Value {
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

/** Calls a filter with the engine's arguments, the operand first. */
export function runFilter(name: string, args: readonly Value[]): Value {
  const { places, names } = splitArguments(args)
  if (isString(places[0])) spendCharacters(places[0].value.length)
  return charged(FILTERS[name](places[0] ?? UNDEFINED, places.slice(1), names))
}

/** Charges the characters of a text that a function has written. @throws RenderLimitExceeded */
function charged(value: Value): Value {
  if (isString(value)) spendCharacters(value.value.length)
  return value
}

/** Calls a method with the engine's arguments, the string first. */
export function runMethod(name: string, args: readonly Value[]): Value {
  const { places, names } = splitArguments(args)
  spendCharacters(text(places[0]).length)
  return charged(METHODS[name](text(places[0]), places.slice(1), names))
}
