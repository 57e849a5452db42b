/** Methods and members of values. */
import {
  checkLength,
  MAX_ITEMS,
  RenderLimitExceeded,
  spendCharacters,
  spendSearch,
  spendSteps,
} from '../render-budget.ts'
import { formatFields, MAX_WIDTH } from './format-text.ts'
import { isSpace } from './lexer.ts'
import { at, toMarkup } from './operators.ts'
import { joinTexts } from './to-text.ts'
import {
  type Callable,
  integerOf,
  isEqual,
  isInteger,
  isList,
  isText,
  itemsOf,
  lookUp,
  type Mapping,
  Markup,
  Members,
  type Names,
  Namespace,
  NO_NAMES,
  TemplateError,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts'

type Method = (text: string, places: readonly Value[], names: Names) => Value

const strings = (items: readonly string[]): Value => {
  if (items.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
  return items
}

/** One more than allowed, so that an excess is detected. */
export const SPLIT_LIMIT = MAX_ITEMS + 1

/** The part that a method searches in the text. */
export function searched(given: string, value: Value | undefined): string {
  const part = textOf(value)
  spendSearch(given, part)
  return part
}

/** Text, cut where the part is; at most so many times, from the start. */
function split(given: string, part: Value | undefined, most = -1): string[] {
  const isWords = part === undefined || part === null
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

export function replace(given: string, [from, to, places]: readonly Value[], names: Names) {
  const [part, by] = [searched(given, from), textOf(to)]
  const most = integerOf(places ?? names.get('count') ?? -1)
  const limit = most < 0 ? Number.POSITIVE_INFINITY : most
  let result = ''
  let start = 0
  let count = 0
  for (let at = given.indexOf(part); at >= 0 && count < limit; count++) {
    spendSteps()
    result += given.slice(start, at) + by
    checkLength(result.length)
    start = at + part.length
    // An empty part matches before each character and after the last one.
    const step = part !== '' ? 0 : (given.codePointAt(start) ?? 0) > 0xffff ? 2 : 1
    at = start + step > given.length ? -1 : given.indexOf(part, start + step)
  }
  return result + given.slice(start)
}

/** Whether the text starts, or ends, with the part or with one of several. */
function hasEnd(given: string, parts: Value | undefined, matches: (part: string) => boolean): Value {
  const list = parts instanceof Tuple ? parts.items : [parts]
  return list.some((part) => {
    spendCharacters(Math.min(textOf(part).length, given.length))
    return matches(textOf(part))
  })
}

function count(given: string, part: string): number {
  if (part === '') return given.length + 1
  let found = 0
  for (let at = given.indexOf(part); at >= 0; at = given.indexOf(part, at + part.length)) found++
  return found
}

function stripSet(letters: Value | undefined): (letter: string) => boolean {
  if (letters === undefined || letters === null) return isSpace
  const set = new Set(textOf(letters))
  return (letter) => set.has(letter)
}

export function strip(given: string, letters: Value | undefined, atStart: boolean, atEnd: boolean): Value {
  const isStripped = stripSet(letters)
  let start = 0
  let end = given.length
  if (atStart) while (start < end && isStripped(given[start])) start++
  if (atEnd) while (end > start && isStripped(given[end - 1])) end--
  return given.slice(start, end)
}

const pad = (given: string, width: Value | undefined, letter: string, isLeft: boolean) => {
  const size = Math.min(integerOf(width ?? 0), MAX_WIDTH)
  return isLeft ? given.padStart(size, letter) : given.padEnd(size, letter)
}

const matches =
  (pattern: RegExp): Method =>
  (given) =>
    pattern.test(given)

/** Methods of strings, by name. */
const TEXT_METHODS: Readonly<Record<string, Method>> = {
  upper: (given) => given.toUpperCase(),
  lower: (given) => given.toLowerCase(),
  casefold: (given) => given.toLowerCase(),
  swapcase: (given) =>
    given.replace(/\p{L}/gu, (letter) =>
      letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
    ),
  index: (given, [part]) => found(given.indexOf(searched(given, part))),
  rindex: (given, [part]) => found(given.lastIndexOf(searched(given, part))),
  format: (given, places, names) => formatFields(given, places, names, memberOrItem),
  isupper: (given) => /\p{L}/u.test(given) && given === given.toUpperCase(),
  islower: (given) => /\p{L}/u.test(given) && given === given.toLowerCase(),
  isascii: matches(/^[\0-\x7f]*$/),
  isdecimal: matches(/^\p{Nd}+$/u),
  expandtabs: (given, [size]) =>
    replace(given, ['\t', ' '.repeat(Math.min(integerOf(size ?? 8), 64))], NO_NAMES),
  center: (given, [width]) => center(given, integerOf(width)),
  strip: (given, [letters]) => strip(given, letters, true, true),
  lstrip: (given, [letters]) => strip(given, letters, true, false),
  rstrip: (given, [letters]) => strip(given, letters, false, true),
  removeprefix: (given, [part]) =>
    given.startsWith(textOf(part)) ? given.slice(textOf(part).length) : given,
  removesuffix: (given, [part]) =>
    textOf(part) !== '' && given.endsWith(textOf(part)) ? given.slice(0, -textOf(part).length) : given,
  startswith: (given, [parts]) => hasEnd(given, parts, (part) => given.startsWith(part)),
  endswith: (given, [parts]) => hasEnd(given, parts, (part) => given.endsWith(part)),
  replace: (given, places, names) => replace(given, places, names),
  find: (given, [part]) => given.indexOf(searched(given, part)),
  rfind: (given, [part]) => given.lastIndexOf(searched(given, part)),
  count: (given, [part]) => count(given, searched(given, part)),
  join: (given, [items]) => joinTexts(itemsOf(items), given, textOf),
  split: (given, [part, most], names) =>
    strings(split(given, part ?? names.get('sep'), integerOf(most ?? names.get('maxsplit') ?? -1))),
  splitlines: (given) =>
    strings(given === '' ? [] : given.replace(/(\r\n|\r|\n)$/, '').split(/\r\n|\r|\n/, SPLIT_LIMIT)),
  partition: (given, [part]) =>
    cut(given, given.indexOf(searched(given, part)), textOf(part), [given, '', '']),
  rpartition: (given, [part]) =>
    cut(given, given.lastIndexOf(searched(given, part)), textOf(part), ['', '', given]),
  rsplit: (given, [part, most]) => {
    const pieces = split(given, part)
    const limit = integerOf(most ?? -1)
    if (limit < 0 || pieces.length <= limit + 1) return strings(pieces)
    const rest = pieces.splice(0, pieces.length - limit)
    return strings([rest.join(part === undefined || part === null ? ' ' : textOf(part)), ...pieces])
  },
  capitalize: (given) => given.slice(0, 1).toUpperCase() + given.slice(1).toLowerCase(),
  title: (given) =>
    given.replace(/\p{L}+/gu, (word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()),
  isdigit: matches(/^\p{Nd}+$/u),
  isnumeric: matches(/^\p{N}+$/u),
  isalpha: matches(/^\p{L}+$/u),
  isalnum: matches(/^[\p{L}\p{N}]+$/u),
  isspace: matches(/^\s+$/),
  zfill: (given, [width]) =>
    given.startsWith('-')
      ? `-${given.slice(1).padStart(Math.min(integerOf(width), MAX_WIDTH) - 1, '0')}`
      : pad(given, width, '0', true),
  ljust: (given, [width]) => pad(given, width, ' ', false),
  rjust: (given, [width]) => pad(given, width, ' ', true),
}

function cut(given: string, place: number, part: string, otherwise: readonly string[]): Value {
  return new Tuple(place < 0 ? otherwise : [given.slice(0, place), part, given.slice(place + part.length)])
}

function found(place: number): Value {
  if (place < 0) throw new TemplateError('substring not found')
  return place
}

export function center(given: string, width: number): string {
  const space = Math.min(width, MAX_WIDTH) - given.length
  return space <= 0 ? given : ' '.repeat(space >> 1) + given + ' '.repeat(space - (space >> 1))
}

/** Charges the characters of a text that a function has written. @throws RenderLimitExceeded */
export function charged(value: Value): Value {
  if (typeof value === 'string') {
    spendCharacters(value.length)
    checkLength(value.length)
  }
  return value
}

function textMethod(given: string | Markup, name: string): Callable | undefined {
  if (!Object.hasOwn(TEXT_METHODS, name)) return undefined
  const method = TEXT_METHODS[name]
  const text = textOf(given)
  return (places, names) => {
    spendCharacters(text.length)
    if (!(given instanceof Markup)) return charged(method(text, places, names))
    const result = charged(method(text, places.map(escapedText), names))
    return typeof result === 'string' ? new Markup(result) : result
  }
}

const escapedText = (value: Value): Value => (typeof value === 'string' ? toMarkup(value).text : value)

type MappingMethod = (mapping: Mapping, places: readonly Value[], names: Names) => Value
const MAPPING_METHODS: Readonly<Record<string, MappingMethod>> = {
  get: (mapping, [key, otherwise], names) => {
    const found = lookUp(mapping, key)
    return found === undefined ? (otherwise ?? names.get('default') ?? null) : found
  },
  items: (mapping) => new View('items', mapping),
  keys: (mapping) => new View('keys', mapping),
  values: (mapping) => new View('values', mapping),
  copy: (mapping) => {
    spendSteps(mapping.size)
    return new Map(mapping)
  },
}

type ListMethod = (items: readonly Value[], item: Value) => Value
const LIST_METHODS: Readonly<Record<string, ListMethod>> = {
  count: (items, wanted) => items.filter((item) => isEqual(item, wanted)).length,
  index: (items, wanted) => found(items.findIndex((item) => isEqual(item, wanted))),
  copy: (items) => items,
}

/** Methods that would change their value, which the sandbox of templates forbids. */
const FORBIDDEN: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['dict', new Set(['clear', 'pop', 'popitem', 'setdefault', 'update'])],
  ['list', new Set(['append', 'clear', 'pop', 'reverse', 'insert', 'sort', 'extend', 'remove'])],
])

/** A method or another attribute that does not belong to the data; undefined without one. */
function attribute(value: Value, name: string): Value | undefined {
  if (isText(value)) return textMethod(value, name)
  if (value instanceof Map) {
    if (Object.hasOwn(MAPPING_METHODS, name))
      return (places, names) => MAPPING_METHODS[name](value, places, names)
  } else if (isList(value) || value instanceof Tuple) {
    if (Object.hasOwn(LIST_METHODS, name)) return ([item = null]) => LIST_METHODS[name](itemsOf(value), item)
  } else if (value instanceof Namespace) return value.members.get(name)
  else if (value instanceof Members) return value.member(name)
  if (!FORBIDDEN.get(typeName(value))?.has(name)) return undefined
  return new Undefined(`access to attribute '${name}' of '${typeName(value)}' object is unsafe.`)
}

function item(value: Value, key: Value): Value | undefined {
  if (value instanceof Map) return lookUp(value, key)
  if ((isInteger(key) || typeof key === 'boolean') && !(value instanceof Undefined)) {
    if (isText(value) || isList(value) || value instanceof Tuple || typeName(value) === 'range')
      return at(value, Number(key))
  }
  return undefined
}

function missing(value: Value, name: Value): Undefined {
  if (value instanceof Undefined) throw new TemplateError(value.reason)
  const kind = value === null ? 'None' : `'${typeName(value)} object'`
  return new Undefined(
    typeof name === 'string'
      ? `${kind} has no attribute '${name}'`
      : `${kind} has no element ${String(name)}`,
  )
}

const orMissing = (found: Value | undefined, value: Value, name: Value): Value =>
  found === undefined ? missing(value, name) : found

/** `value.name`: an attribute, else the item of that key. */
export function memberOf(value: Value, name: string): Value {
  const found = attribute(value, name)
  return found === undefined ? orMissing(item(value, name), value, name) : found
}

/** `value[key]`: the item, else the attribute of that name. */
export function itemOf(value: Value, key: Value): Value {
  const found = item(value, key)
  if (found !== undefined || !isText(key)) return orMissing(found, value, key)
  return orMissing(attribute(value, textOf(key)), value, key)
}

/** An attribute only. */
export const attributeOf = (value: Value, name: string): Value =>
  orMissing(attribute(value, name), value, name)

const memberOrItem = (value: Value, name: string): Value =>
  /^\d+$/.test(name) ? itemOf(value, Number(name)) : memberOf(value, name)
