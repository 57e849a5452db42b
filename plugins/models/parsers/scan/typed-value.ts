/** Converts the text of one parameter to JSON: by its declared types, otherwise by its form. */
import { DONE, isBlank, JsonScanner, type JsonStyle } from './json-scanner.ts'

/** Conversion of a value without a declared type. */
export type Untyped = 'infer' | 'string'

/** Type of a value that is JSON of any kind. */
export const ANY_JSON: readonly string[] = ['json']

/** Types that a union with `string` still selects: their texts are not plausible as strings. */
const STRUCTURED = new Set(['null', 'object', 'array', 'json'])

/** @param types declared types, in order of preference; `string` comes after structured ones and before scalar ones */
export function toTypedJson(
  text: string,
  types: readonly string[],
  untyped: Untyped,
  style: JsonStyle,
): string {
  const isText = types.includes('string')
  for (const type of types) {
    if (isText && !STRUCTURED.has(type)) continue
    const json = byType(text, type, style)
    if (json !== null) return json
  }
  return isText || untyped === 'string' ? JSON.stringify(text) : infer(text, style)
}

/** Longest of the words `true`, `false`, `null` and `None`. */
const MAX_WORD = 5

/** True if every value that begins with this text is a string for `toTypedJson`, so that it can be streamed. */
export function isCertainString(start: string, types: readonly string[], untyped: Untyped): boolean {
  const trimmed = start.trim()
  const [first = ''] = trimmed
  if (types.includes('string')) {
    if (!types.some((type) => STRUCTURED.has(type))) return true
    if (first === '' || first === '{' || first === '[') return false
    return !types.includes('json') && !(types.includes('null') && 'null'.startsWith(trimmed))
  }
  if (types.length > 0) return false
  if (untyped === 'string') return true
  if (first === '' || /[{["\d+.-]/.test(first)) return false
  return !/[tfn]/i.test(first) || trimmed.length > MAX_WORD
}

function byType(text: string, type: string, style: JsonStyle): string | null {
  switch (type) {
    case 'integer':
      return integerOf(text.trim())
    case 'number':
      return numberOf(text.trim())
    case 'boolean':
      return booleanOf(text.trim())
    case 'object':
      return text.trimStart().startsWith('{') ? rewriteJson(text, style) : null
    case 'array':
      return text.trimStart().startsWith('[') ? rewriteJson(text, style) : null
    case 'json':
      return rewriteJson(text, style)
    case 'null':
      return text.trim() === 'null' ? 'null' : null
    default:
      return null
  }
}

function infer(text: string, style: JsonStyle): string {
  const trimmed = text.trim()
  if (trimmed === '') return JSON.stringify(text)
  const json = rewriteJson(trimmed, style)
  if (json !== null) return json
  if (trimmed === 'None') return 'null'
  return booleanOf(trimmed) ?? integerOf(trimmed) ?? floatOf(trimmed) ?? JSON.stringify(text)
}

function booleanOf(text: string): string | null {
  if (text.length > MAX_WORD) return null
  const lower = text.toLowerCase()
  return lower === 'true' || lower === 'false' ? lower : null
}

/** Keeps all digits, and removes only what JSON does not allow at the front. */
function integerOf(text: string): string | null {
  // Leading zeros are removed afterwards: two groups that both match them backtrack over every division.
  const match = /^([+-]?)(\d+)$/.exec(text)
  if (match === null) return null
  return `${match[1] === '-' ? '-' : ''}${match[2].replace(/^0+(?=\d)/, '')}`
}

function numberOf(text: string): string | null {
  return /^[-\d]/.test(text) ? (rewriteJson(text) ?? integerOf(text)) : null
}

/** Forms such as `.5` and `1.`, which JSON lacks. */
function floatOf(text: string): string | null {
  const match = /^([+-]?)(\d*)\.(\d*)([eE][+-]?\d+)?$/.exec(text)
  if (match === null || match[2] + match[3] === '') return null
  const whole = match[2].replace(/^0+/, '') || '0'
  return `${match[1] === '-' ? '-' : ''}${whole}.${match[3] || '0'}${match[4] ?? ''}`
}

/** Longest value that is rewritten, in characters. */
const MAX_LENGTH = 64 * 1024 * 1024

/** The same value without needless space; null when the text is not one JSON value. */
export function rewriteJson(text: string, style: JsonStyle = 'compact'): string | null {
  const scanner = new JsonScanner(style, MAX_LENGTH)
  const at = scanner.feed(text, 0, text.length)
  scanner.finish()
  return scanner.status === DONE && isBlank(text.slice(at)) ? scanner.output : null
}
