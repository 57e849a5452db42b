/** Converts one part of an answer to the value that its template describes. */
import { parseBoundedText } from '#kernel'
import type { ParsedCall } from '../parse-text.ts'
import { type ToolTypes, typesOf } from '../scan/tool-types.ts'
import { rewriteJson, toTypedJson } from '../scan/typed-value.ts'
import { compilePattern, type PatternProgram } from './pattern-program.ts'
import { allMatches } from './pattern-run.ts'

type Args = Readonly<Record<string, unknown>>

/** Description of the text of a part. */
export interface ContentRules {
  /** Name of the content parser. */
  readonly content: string
  readonly contentArgs: Args
  /** Undefined keeps the value. */
  readonly transform: unknown
  /** The value is a list, and the transform applies to each item. */
  readonly transformsEach: boolean
}

type Groups = ReadonlyMap<string, string>

/** Preserves the digits of numbers in `JSON.stringify`. */
type RawJson = { readonly rawJSON: string }
const json = JSON as unknown as {
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): boolean
  parse(
    text: string,
    revive: (key: string, value: unknown, at: { readonly source?: string }) => unknown,
  ): unknown
}

const MAX_DIGITS = 400
const MAX_PARSERS = 4
const MAX_DELIMITERS = 16
const INTEGER = /^[+-]?\d+$/
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const PLACEHOLDER = /\{(\w+(?:\.\w+)*)\}/
const WHOLE_PLACEHOLDER = /^\{(\w+(?:\.\w+)*)\}$/

const contentParsers: ReadonlyMap<string, (text: string, args: Args, depth: number) => unknown> = new Map<
  string,
  (text: string, args: Args, depth: number) => unknown
>([
  ['text', stripped],
  ['int', (text, args) => integer(stripped(text, args))],
  ['float', (text, args) => float(stripped(text, args))],
  ['bool', (text, args) => ['true', '1'].includes(stripped(text, args).toLowerCase())],
  ['json', looseJson],
  ['xml-inline', inlineTags],
  ['kv-lines', keyedLines],
])

export function isContentParser(name: string): boolean {
  return contentParsers.has(name)
}

/** @param name of a known parser. @throws Error with the reason */
export function checkContentArgs(name: string, args: Args, depth = 0): void {
  if (name === 'xml-inline' && !tagPatternOf(args).groups.includes('key'))
    throw new Error("its tag_pattern has no group named 'key'")
  const { value_parser: parser } = args
  if (parser === undefined || parser === null) return
  if (depth >= MAX_PARSERS) throw new Error(`value_parser is more than ${MAX_PARSERS} deep`)
  if (!isDict(parser) || !isContentParser(String(parser.name ?? 'text')))
    throw new Error('value_parser.name is not a known content parser')
  checkContentArgs(String(parser.name ?? 'text'), isDict(parser.args) ? parser.args : {}, depth + 1)
}

/** A placeholder must be the whole text. @throws the error that `fault` creates */
export function checkTransform(transform: unknown, fault: (text: string) => Error, depth = 0): void {
  if (depth > 16) throw fault('has a transform of more than 16 levels')
  if (typeof transform === 'string') {
    if (PLACEHOLDER.test(transform) && !WHOLE_PLACEHOLDER.test(transform))
      throw fault(
        `has a transform that mixes a placeholder with text: ${JSON.stringify(transform.slice(0, 100))}`,
      )
  } else if (typeof transform === 'object' && transform !== null)
    for (const part of Object.values(transform)) checkTransform(part, fault, depth + 1)
}

/** @throws Error if the text does not match the field */
export function contentOf(field: ContentRules, text: string, groups: Groups): unknown {
  const value = parseContent(text, field.content, field.contentArgs, 0)
  if (field.transform === undefined) return value
  if (!field.transformsEach) return transformed(field.transform, new Map([...groups, ['content', value]]))
  if (!Array.isArray(value)) throw new Error('no list')
  return value.map((item: unknown) => {
    if (!isDict(item)) throw new Error('no object in the list')
    return transformed(field.transform, new Map([...groups, ...Object.entries(item)]))
  })
}

function parseContent(text: string, name: string, args: Args, depth: number): unknown {
  const parser = contentParsers.get(name)
  if (parser === undefined || depth > MAX_PARSERS) throw new Error('no such content')
  return parser(text, args, depth)
}

function stripped(text: string, args: Args): string {
  return args.strip === false ? text : text.trim()
}

function integer(text: string): unknown {
  if (!INTEGER.test(text) || text.length > MAX_DIGITS) throw new Error('no integer')
  return json.rawJSON(BigInt(text.replace('+', '')).toString())
}

function float(text: string): unknown {
  if (NUMBER.test(text)) return json.rawJSON(text)
  const value = text === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value)) throw new Error('no number')
  return value
}

/** Parses JSON, and the variants that the template allows. */
function looseJson(text: string, args: Args): unknown {
  const delimiters = Array.isArray(args.string_delims)
    ? args.string_delims.slice(0, MAX_DELIMITERS).filter(isPair)
    : []
  const hasLooseKeys = args.unquoted_keys === true
  const strict = delimiters.length > 0 || hasLooseKeys ? toStrictJson(text, delimiters, hasLooseKeys) : text
  try {
    const value = parseBoundedText(strict)
    if (!/\d/.test(strict)) return value
    return json.parse(strict, (_key, part, { source }) =>
      typeof part === 'number' && source !== undefined && String(part) !== source
        ? json.rawJSON(source)
        : part,
    )
  } catch (failure) {
    if (args.allow_non_json === true) return stripped(text, args)
    throw failure
  }
}

type Pair = readonly [open: string, close: string]

function isPair(pair: unknown): pair is Pair {
  return (
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string' && text !== '')
  )
}

/** Converts strings between the model's own delimiters and keys without quotes to JSON. */
function toStrictJson(text: string, delimiters: readonly Pair[], hasLooseKeys: boolean): string {
  const parts: string[] = []
  const word = /[\p{L}\p{N}_]+/uy
  /** Delimiters whose closing mark does not follow. */
  const spent = new Set<Pair>()
  /** The last character that is not space. */
  let before = ''
  for (let at = 0; at < text.length; ) {
    const pair = delimiters.find((one) => !spent.has(one) && text.startsWith(one[0], at))
    const close = pair === undefined ? -1 : text.indexOf(pair[1], at + pair[0].length)
    if (pair !== undefined && close < 0) spent.add(pair)
    if (pair !== undefined && close >= 0) {
      parts.push(JSON.stringify(text.slice(at + pair[0].length, close)))
      at = close + pair[1].length
      before = '"'
      continue
    }
    let end = text[at] === '"' ? stringEnd(text, at) : at + 1
    if (hasLooseKeys && (before === '{' || before === ',')) {
      word.lastIndex = at
      const key = word.exec(text)?.[0]
      if (key !== undefined && /^\s*:/.test(text.slice(at + key.length, at + key.length + 16))) {
        parts.push(JSON.stringify(key))
        at += key.length
        before = '"'
        continue
      }
      if (key !== undefined) end = at + key.length
    }
    const part = text.slice(at, end)
    parts.push(part)
    if (part.trim() !== '') before = part[part.length - 1]
    at = end
  }
  return parts.join('')
}

function stringEnd(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return Math.min(at + 1, text.length)
}

const tagPatterns = new WeakMap<Args, PatternProgram>()

/** Parses adjacent tags, each with a key and its value. */
function inlineTags(text: string, args: Args, depth: number): unknown {
  const merges = args.merge_duplicates === true
  const members = new Map<string, unknown>()
  for (const { groups } of allMatches(tagPatternOf(args), text)) {
    const key = groups.get('key')
    if (key === undefined) throw new Error('a tag without a key')
    const value = subValue(groups.get('value') ?? '', args, depth)
    const earlier = members.get(key)
    if (!merges || earlier === undefined) members.set(key, value)
    else if (Array.isArray(earlier)) earlier.push(value)
    else members.set(key, [earlier, value])
  }
  return Object.fromEntries(members)
}

function tagPatternOf(args: Args): PatternProgram {
  const known = tagPatterns.get(args)
  if (known !== undefined) return known
  if (typeof args.tag_pattern !== 'string') throw new Error('it has no tag_pattern')
  const program = compilePattern(args.tag_pattern)
  tagPatterns.set(args, program)
  return program
}

/** Parses lines of a key, a separator and a value. */
function keyedLines(text: string, args: Args, depth: number): unknown {
  const lines = typeof args.line_sep === 'string' && args.line_sep !== '' ? args.line_sep : '\n'
  const separator = typeof args.kv_sep === 'string' && args.kv_sep !== '' ? args.kv_sep : ':'
  const members = new Map<string, unknown>()
  for (const line of text.split(lines)) {
    const at = line.indexOf(separator)
    if (at < 0) continue
    const value = stripped(line.slice(at + separator.length), args)
    members.set(stripped(line.slice(0, at), args), subValue(value, args, depth))
  }
  return Object.fromEntries(members)
}

function subValue(text: string, { value_parser: parser }: Args, depth: number): unknown {
  if (!isDict(parser)) return text
  const name = typeof parser.name === 'string' ? parser.name : 'text'
  return parseContent(text, name, isDict(parser.args) ? parser.args : {}, depth + 1)
}

function transformed(transform: unknown, scope: ReadonlyMap<string, unknown>): unknown {
  if (Array.isArray(transform)) return transform.map((part) => transformed(part, scope))
  if (isDict(transform))
    return Object.fromEntries(Object.entries(transform).map(([key, part]) => [key, transformed(part, scope)]))
  if (typeof transform !== 'string') return transform
  const path = WHOLE_PLACEHOLDER.exec(transform)?.[1]
  if (path === undefined) return transform
  const [root, ...keys] = path.split('.')
  if (!scope.has(root)) throw new Error(`nothing is named ${root}`)
  let value = scope.get(root)
  for (const key of keys) {
    if (!isDict(value) || !Object.hasOwn(value, key)) throw new Error(`nothing is named ${path}`)
    value = value[key]
  }
  return value
}

/** Converts a value to text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** True for a JSON object; false for a number of `rawJSON`. */
function isDict(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !json.isRawJSON(value)
}

/** Calls in a value, typed as the tools declare them. @returns null if any item is not a call */
export function callsOf(value: unknown, tools: ToolTypes): readonly ParsedCall[] | null {
  const calls: ParsedCall[] = []
  for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) {
    const call = callOf(item, tools)
    if (call === null) return null
    calls.push(call)
  }
  return calls
}

function callOf(value: unknown, tools: ToolTypes): ParsedCall | null {
  if (!isDict(value)) return null
  const called = isDict(value.function) ? value.function : value
  const { name } = called
  if (typeof name !== 'string' || name === '') return null
  const given = called.arguments ?? called.parameters ?? {}
  const written = isDict(given)
    ? typed(name, given, tools)
    : typeof given === 'string'
      ? rewriteJson(given)
      : null
  return written === null ? null : { name, arguments: written }
}

function typed(name: string, given: Record<string, unknown>, tools: ToolTypes): string {
  const members = Object.entries(given).map(([key, value]) => {
    const types = typesOf(tools.parameter(name, key))
    return `${JSON.stringify(key)}:${member(value, types)}`
  })
  return `{${members.join(',')}}`
}

function member(value: unknown, types: readonly string[]): string {
  if (typeof value === 'string') return toTypedJson(value, types, 'string', 'compact')
  // Repeated values of one parameter are typed one by one.
  if (Array.isArray(value) && types.length > 0 && !types.includes('array'))
    return `[${value.map((item: unknown) => (typeof item === 'string' ? member(item, types) : JSON.stringify(item))).join(',')}]`
  return JSON.stringify(value)
}
