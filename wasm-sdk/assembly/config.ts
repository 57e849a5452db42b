/** The settings that the operator gave the module: names and texts. */
import * as host from './extism'
import { fromUtf8, takeBlock, toTextBlock } from './memory'

export namespace config {
  /** Null when the name is not set. */
  export function get(name: string): string | null {
    const key = toTextBlock(name)
    const value = takeBlock(host.config_get(key))
    host.free(key)
    return value === null ? null : fromUtf8(value)
  }

  export function text(name: string, fallback: string): string {
    const value = get(name)
    return value === null ? fallback : value
  }

  /** Fails the call when the setting is there and no whole number: a typing error must not become a default. */
  export function integer(name: string, fallback: i64): i64 {
    const value = get(name)
    if (value === null) return fallback
    const trimmed = value.trim()
    const number = I64.parseInt(trimmed)
    assert(number.toString() == trimmed, `setting ${name} is no whole number`)
    return number
  }

  /** `true` or `false`; anything else fails the call. */
  export function bool(name: string, fallback: boolean): boolean {
    const value = get(name)
    if (value === null) return fallback
    assert(value == 'true' || value == 'false', `setting ${name} is neither true nor false`)
    return value == 'true'
  }

  /** Parts between commas, without the spaces around them; empty when the name is not set. */
  export function list(name: string): string[] {
    const parts = text(name, '').split(',')
    const found: string[] = []
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i].trim()
      if (part.length > 0) found.push(part)
    }
    return found
  }
}
