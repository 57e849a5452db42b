/** Reads the arguments of a call as a model wrote them. */
import { parseBoundedText } from '#shared'

/** Null when the text is no JSON object; nothing at all is an empty one. */
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
