/** The settings with which the module was registered. */
import * as host from './extism'
import { fromUtf8, takeBlock, toTextBlock } from './memory'

export namespace config {
  /** Null if the setting is absent. */
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

  /** Fails the call if the setting is not an integer, so that a typing error does not become the default. */
  export function integer(name: string, fallback: i64): i64 {
    const value = get(name)
    if (value === null) return fallback
    const trimmed = value.trim()
    const number = I64.parseInt(trimmed)
    assert(number.toString() == trimmed, `setting ${name} is not an integer`)
    return number
  }

  /** `true` or `false`; other values fail the call. */
  export function bool(name: string, fallback: boolean): boolean {
    const value = get(name)
    if (value === null) return fallback
    assert(value == 'true' || value == 'false', `setting ${name} is neither true nor false`)
    return value == 'true'
  }

  /** Comma-separated parts, trimmed; empty if the setting is absent. */
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
