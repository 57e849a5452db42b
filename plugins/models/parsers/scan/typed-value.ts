/** Turns the text of one parameter into JSON: by the declared type, else by what it looks like. */
import type { JsonStyle } from './json-scanner.ts'
import { quote, rewriteJson, unquote } from './json-text.ts'

/** What the text of a value becomes where no type is declared. */
export type Untyped = 'infer' | 'string'

/** @param type declared type, undefined when there is none */
export function toTypedJson(
  text: string,
  type: string | undefined,
  untyped: Untyped,
  style: JsonStyle,
): string {
  const typed = type === undefined ? null : byType(text, type, style)
  if (typed !== null) return typed
  if (untyped === 'string') return quote(text)
  return infer(text, style)
}

function byType(text: string, type: string, style: JsonStyle): string | null {
  switch (type) {
    case 'string':
      return toStringJson(text)
    case 'integer':
      return integerOf(text.trim())
    case 'number':
      return numberOf(text.trim())
    case 'boolean':
      return booleanOf(text.trim())
    case 'object':
    case 'array':
      return rewriteJson(text, style)
    case 'null':
      return text.trim() === 'null' ? 'null' : null
    default:
      return null
  }
}

/** A text that is itself a JSON string literal is meant without its quotes. */
function toStringJson(text: string): string {
  const trimmed = text.trim()
  const literal =
    trimmed.length > 1 && trimmed[0] === '"' && trimmed.endsWith('"') ? rewriteJson(trimmed) : null
  return quote(literal === null ? text : unquote(literal))
}

function infer(text: string, style: JsonStyle): string {
  const trimmed = text.trim()
  if (trimmed === '') return quote(text)
  const json = rewriteJson(trimmed, style)
  if (json !== null) return json
  if (trimmed === 'None') return 'null'
  return booleanOf(trimmed) ?? integerOf(trimmed) ?? floatOf(trimmed) ?? quote(text)
}

function booleanOf(text: string): string | null {
  if (text.length > 5) return null
  const lower = text.toLowerCase()
  return lower === 'true' || lower === 'false' ? lower : null
}

/** Digits stay as they are, however many; only what JSON does not allow at the front goes. */
function integerOf(text: string): string | null {
  // Zeros at the front are taken off afterwards: two parts that both take them are tried in every division.
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
