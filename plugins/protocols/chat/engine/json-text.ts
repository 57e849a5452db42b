/** Arguments of tool calls as text: for the few engines that send objects, or everything twice. */

import { parseBoundedText } from '#shared'

export function isJsonText(text: string): boolean {
  try {
    parseBoundedText(text)
    return true
  } catch {
    return false
  }
}

export function toJsonText(value: object): string {
  return JSON.stringify(value)
}
