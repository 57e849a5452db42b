/** Writes one parameter of a call as a member of its JSON object. */
import { quote } from '../scan/json-text.ts'
import { type ToolTypes, typeOf } from '../scan/tool-types.ts'
import { toTypedJson } from '../scan/typed-value.ts'
import type { CompiledHeads } from './headed-format.ts'

/** @returns null when the header names no key */
export function writePair(
  format: CompiledHeads,
  tools: ToolTypes,
  tool: string,
  header: string,
  text: string,
): string | null {
  const { pair } = format
  const key = pair === null ? null : pair.toKey(header)
  if (pair === null || key === null) return null
  const value = pair.toValue(text)
  const json = toTypedJson(
    value,
    key.type ?? declared(format, tools, tool, key.name),
    pair.untyped,
    format.style,
  )
  return `${quote(key.name)}${format.colon}${json}`
}

function declared(format: CompiledHeads, tools: ToolTypes, tool: string, key: string): string | undefined {
  return format.pair?.isTyped === true ? typeOf(tools.parameter(tool, key)) : undefined
}
