/** Methods of strings that the template engine lacks or that differ from Python's. */
import {
  checkLength,
  MAX_ITEMS,
  RenderLimitExceeded,
  spendCharacters,
  spendSearch,
  spendSteps,
} from './render-budget.ts'
import {
  isList,
  isMapping,
  isString,
  joinTexts,
  type Names,
  TemplateError,
  toArrayValue,
  toBooleanValue,
  toIntegerValue,
  toStringValue,
  toText,
  type Value,
} from './template-values.ts'

/** Maximum width that a template can pad to. */
const MAX_WIDTH = 100_000

/** Characters that are spaces for Python's `strip` but not for JavaScript's `trim`. */
const PYTHON_SPACES = ['\u001c', '\u001d', '\u001e', '\u001f', '\u0085']

type Method = (text: string, places: readonly Value[], names: Names) => Value

export const text = (value: Value | undefined): string => {
  if (!isString(value))
    throw new TemplateError(`a string is expected, got ${value === undefined ? 'nothing' : toText(value)}`)
  return value.value
}
const strings = (items: readonly string[]): Value => {
  if (items.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
  return toArrayValue(items.map(toStringValue))
}

/** One more than allowed, so that an excess is detected. */
export const SPLIT_LIMIT = MAX_ITEMS + 1

/** The part that a method searches in the text. */
export function searched(given: string, value: Value | undefined): string {
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

export function replace(given: string, [from, to, places]: readonly Value[], names: Names) {
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
    // An empty part matches before each character and after the last one.
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

export function strip(given: string, letters: Value | undefined, atStart: boolean, atEnd: boolean): Value {
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
export function itemsOf(value: Value | undefined): readonly Value[] {
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

/** Charges the characters of a text that a function has written. @throws RenderLimitExceeded */
export function charged(value: Value): Value {
  if (isString(value)) spendCharacters(value.value.length)
  return value
}

/** Calls a method. @param name of one in `METHODS` */
export function runMethod(name: string, given: string, places: readonly Value[], names: Names): Value {
  spendCharacters(given.length)
  return charged(METHODS[name](given, places, names))
}
