/** Validates and rewrites whole JSON texts without parsing them to JavaScript values. */
import { DONE, isBlank, JsonScanner, type JsonStyle } from './json-scanner.ts'

/** Longest value that is rewritten, in characters. */
const MAX_LENGTH = 64 * 1024 * 1024

/** The same value without needless space; null when the text is not one JSON value. */
export function rewriteJson(text: string, style: JsonStyle = 'compact'): string | null {
  const scanner = new JsonScanner(style, MAX_LENGTH)
  const at = scanner.feed(text, 0, text.length)
  scanner.finish()
  return scanner.status === DONE && isBlank(text.slice(at)) ? scanner.output : null
}

/** A JSON string literal for any text. */
export function quote(text: string): string {
  return JSON.stringify(text)
}

/** The text of a literal that a scanner has passed. */
export function unquote(literal: string): string {
  const value: unknown = JSON.parse(literal)
  return typeof value === 'string' ? value : ''
}
