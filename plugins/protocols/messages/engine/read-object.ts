/** JSON of a worker that must be one object. */
import { parseBoundedText } from '#shared'
import { isObject } from './message-answer.ts'

/** @throws SyntaxError when it is no JSON, TypeError when it is no object */
export function readObject(text: string): Record<string, unknown> {
  const value = parseBoundedText(text)
  if (!isObject(value)) throw new TypeError('the answer holds no JSON object')
  return value
}
