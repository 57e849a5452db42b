/** Calls in the value of a part: name and arguments, typed as the tools declare them. */
import type { ParsedCall } from '../parse-text.ts'
import { quote, rewriteJson } from '../scan/json-text.ts'
import type { ToolTypes } from '../scan/tool-types.ts'
import { toTypedJson } from '../scan/typed-value.ts'
import { isDict } from './region-content.ts'

const MAX_UNION = 16

/** @returns null when any of it is no call */
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
    const types = typesOf(tools.parameter(name, key), 0)
    return `${quote(key)}:${member(value, types)}`
  })
  return `{${members.join(',')}}`
}

function member(value: unknown, types: readonly string[]): string {
  if (typeof value === 'string') return typedText(value, types)
  // Several of one name, where one value is meant to be typed by itself.
  if (Array.isArray(value) && types.length > 0 && !types.includes('array'))
    return `[${value.map((item: unknown) => (typeof item === 'string' ? typedText(item, types) : JSON.stringify(item))).join(',')}]`
  return JSON.stringify(value)
}

/** The first of the declared types that the text is one of; a text otherwise. */
function typedText(text: string, types: readonly string[]): string {
  const plain = quote(text)
  for (const type of types) {
    if (type === 'string') continue
    const written = toTypedJson(text, type, 'string', 'compact')
    if (written !== plain) return written
  }
  return plain
}

/** Types of a schema and of the choices that it leaves. */
function typesOf(schema: unknown, depth: number): readonly string[] {
  if (!isDict(schema) || depth > 4) return []
  const { type, nullable, anyOf, oneOf } = schema
  const types = (Array.isArray(type) ? (type as unknown[]) : [type]).filter(
    (name): name is string => typeof name === 'string',
  )
  for (const choices of [anyOf, oneOf])
    if (Array.isArray(choices))
      for (const choice of choices.slice(0, MAX_UNION))
        for (const name of typesOf(choice, depth + 1)) types.push(name)
  if (nullable === true && !types.includes('null')) types.push('null')
  return types.slice(0, MAX_UNION)
}
