/** Calls in the value of a part: name and arguments, typed as the tools declare them. */
import type { ParsedCall } from '../parse-text.ts'
import { type ToolTypes, typesOf } from '../scan/tool-types.ts'
import { rewriteJson, toTypedJson } from '../scan/typed-value.ts'
import { isDict } from './region-content.ts'

/** @returns null if any item is not a call */
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
    return `[${value.map((item: unknown) => (typeof item === 'string' ? toTypedJson(item, types, 'string', 'compact') : JSON.stringify(item))).join(',')}]`
  return JSON.stringify(value)
}
