/** What templates may call: the filters and methods of strings that the engine lacks or treats otherwise than Python does. */
import {
  isEqual,
  isList,
  isMapping,
  isString,
  isTrue,
  NONE,
  splitArguments,
  toArrayValue,
  toBooleanValue,
  toIntegerValue,
  toJson,
  toStringValue,
  toText,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** A template that refuses a request; the message is for the client. */
export class TemplateRefusal extends Error {}

/** Longest text that a template may pad to. */
const MAX_WIDTH = 100_000

/** Letters that Python's `strip` takes for spaces and JavaScript's `trim` does not. */
const PYTHON_SPACES = ['\u001c', '\u001d', '\u001e', '\u001f', '\u0085']

type Method = (text: string, places: readonly Value[], names: ReadonlyMap<string, Value>) => Value
type Filter = (operand: Value, places: readonly Value[], names: ReadonlyMap<string, Value>) => Value

const text = (value: Value | undefined): string => {
  if (!isString(value))
    throw new TemplateRefusal(`a string is expected, got ${value === undefined ? 'nothing' : toText(value)}`)
  return value.value
}
const strings = (items: readonly string[]): Value => toArrayValue(items.map(toStringValue))

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
  find: (given, [part]) => toIntegerValue(given.indexOf(text(part))),
  rfind: (given, [part]) => toIntegerValue(given.lastIndexOf(text(part))),
  count: (given, [part]) => toIntegerValue(given.split(text(part)).length - 1),
  join: (given, [items]) => toStringValue(itemsOf(items).map(text).join(given)),
  splitlines: (given) => strings(given === '' ? [] : given.replace(/(\r\n|\r|\n)$/, '').split(/\r\n|\r|\n/)),
  partition: (given, [part]) => cut(given, given.indexOf(text(part)), text(part), [given, '', '']),
  rpartition: (given, [part]) => cut(given, given.lastIndexOf(text(part)), text(part), ['', '', given]),
  rsplit: (given, [part, most]) => {
    const pieces =
      part === undefined || part.type === 'NullValue' ? given.trim().split(/\s+/) : given.split(text(part))
    const limit = Number(most?.value ?? -1)
    if (limit < 0 || pieces.length <= limit + 1) return strings(pieces)
    const rest = pieces.splice(0, pieces.length - limit)
    return strings([rest.join(part === undefined ? ' ' : text(part)), ...pieces])
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

function itemsOf(value: Value | undefined): readonly Value[] {
  if (isList(value)) return value.value
  if (isMapping(value)) return [...value.value.keys()].map(toStringValue)
  if (isString(value)) return [...value.value].map(toStringValue)
  if (value === undefined || value.type === 'UndefinedValue') return []
  throw new TemplateRefusal(`a list is expected, got ${toText(value)}`)
}

function attribute(item: Value, path: string): Value {
  let value = item
  for (const part of path.split('.')) {
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
  if (name === undefined) return isTrue(value)
  if (!Object.hasOwn(TESTS, text(name))) throw new TemplateRefusal(`there is no test named ${text(name)}`)
  return TESTS[text(name)](value, operand ?? UNDEFINED)
}

const isIn = (value: Value, set: Value) =>
  isString(set) ? set.value.includes(text(value)) : itemsOf(set).some((item) => isEqual(item, value))

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
  in: isIn,
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
  join: (operand, [separator, path], names) => {
    const by = path ?? names.get('attribute')
    const items =
      by === undefined ? itemsOf(operand) : itemsOf(operand).map((item) => attribute(item, text(by)))
    return toStringValue(items.map(toText).join(toText(separator ?? names.get('d') ?? toStringValue(''))))
  },
  select: (operand, test) => toArrayValue(itemsOf(operand).filter((item) => passes(item, test))),
  reject: (operand, test) => toArrayValue(itemsOf(operand).filter((item) => !passes(item, test))),
  selectattr: (operand, [path, ...test]) =>
    toArrayValue(itemsOf(operand).filter((item) => passes(attribute(item, text(path)), test))),
  rejectattr: (operand, [path, ...test]) =>
    toArrayValue(itemsOf(operand).filter((item) => !passes(attribute(item, text(path)), test))),
  map: (operand, [name, ...places], names) => {
    const path = names.get('attribute')
    const missing = names.get('default') ?? UNDEFINED
    const change = (item: Value): Value => {
      if (path === undefined) return callFilter(text(name), item, places)
      const found = attribute(item, toText(path))
      return found.type === 'UndefinedValue' ? missing : found
    }
    return toArrayValue(itemsOf(operand).map(change))
  },
  upper: (operand) => toStringValue(toText(operand).toUpperCase()),
  lower: (operand) => toStringValue(toText(operand).toLowerCase()),
  capitalize: (operand) => callMethod('capitalize', operand, []),
  title: (operand) => callMethod('title', operand, []),
}

function callFilter(name: string, item: Value, places: readonly Value[]): Value {
  if (!Object.hasOwn(FILTERS, name)) throw new TemplateRefusal(`there is no filter named ${name}`)
  return FILTERS[name](item, places, new Map())
}

function callMethod(name: string, item: Value, places: readonly Value[]): Value {
  return METHODS[name](toText(item), places, new Map())
}

function lengthOf(value: Value): number {
  // Of a string, Python counts characters and not UTF-16 units.
  if (isString(value)) return [...value.value].length
  return itemsOf(value).length
}

/** As transformers' own: `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`. */
function toJsonFilter(operand: Value, places: readonly Value[], names: ReadonlyMap<string, Value>): Value {
  const known = ['ensure_ascii', 'indent', 'separators', 'sort_keys']
  for (const name of names.keys())
    if (!known.includes(name)) throw new TemplateRefusal(`tojson has no argument named ${name}`)
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
  return FILTERS[name](places[0] ?? UNDEFINED, places.slice(1), names)
}

/** Calls a method with the engine's arguments, the string first. */
export function runMethod(name: string, args: readonly Value[]): Value {
  const { places, names } = splitArguments(args)
  return METHODS[name](text(places[0]), places.slice(1), names)
}
