/** Parses the arguments of a call of a model. */
import { parseBoundedText } from '#shared'

/** Null if the text is not a JSON object; an empty text is an empty object. */
export function parseArguments(text: string): Record<string, unknown> | null {
  if (text.trim() === '') return {}
  try {
    const value = parseBoundedText(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}
