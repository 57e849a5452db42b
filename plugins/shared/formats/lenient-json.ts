/** JSON that models and workers write: text that is not JSON is no exception. */
import { isObject, parseBoundedText } from '#kernel'

/** @returns undefined for text that is not JSON, or is nested too deeply */
export function tryParseJson(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return undefined
  }
}

/** Arguments of a tool call. @returns an empty object for text that is no JSON object: models make mistakes */
export function parseCallArguments(text: string): Record<string, unknown> {
  const value = tryParseJson(text)
  return isObject(value) ? value : {}
}
