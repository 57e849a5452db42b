/** JSON of clients, workers and the store. */
import { isObject } from '#kernel'
import { parseBoundedText } from '#shared'

export type Json = Readonly<Record<string, unknown>>

/** @throws SyntaxError when it is no JSON, TypeError when it is no object */
export function readObject(text: string): Json {
  const value = parseBoundedText(text)
  if (!isObject(value)) throw new TypeError('the answer holds no JSON object')
  return value
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
