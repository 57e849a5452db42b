/** The input of a tool call from the text that a model wrote. */
import { parseBoundedText } from '#shared'
import { isObject } from './check-request.ts'

/** Ends that a text which was cut off may lack; nothing longer is tried. */
const REPAIRS: readonly string[] = ['', '}', '"}', ']}', '"]}', '}}', '"}}']

/** @returns an empty object for what cannot be read as one */
export function parseInput(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  for (const end of REPAIRS) {
    try {
      const value = parseBoundedText(text + end)
      return isObject(value) ? value : {}
    } catch {}
  }
  return {}
}
