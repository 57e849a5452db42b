/** Values and counters of the module and the tenant, which outlive the call. */
import * as host from './extism'
import { fromUtf8, takeBlock, toBlock, toTextBlock, toUtf8 } from './memory'

export namespace kv {
  /** Null if absent or expired. */
  export function get(key: string): Uint8Array | null {
    const block = toTextBlock(key)
    const value = takeBlock(host.kv_get(block))
    host.free(block)
    return value
  }

  export function getText(key: string): string | null {
    const value = get(key)
    return value === null ? null : fromUtf8(value)
  }

  /** @param ttlMs 0 for the longest allowed @returns false if it was not stored */
  export function set(key: string, value: Uint8Array, ttlMs: i64 = 0): bool {
    const keyBlock = toTextBlock(key)
    const valueBlock = toBlock(value)
    const stored = host.kv_set(keyBlock, valueBlock, ttlMs)
    host.free(keyBlock)
    host.free(valueBlock)
    return stored == 1
  }

  export function setText(key: string, value: string, ttlMs: i64 = 0): bool {
    return set(key, toUtf8(value), ttlMs)
  }

  /** @returns true if there was a value */
  export function remove(key: string): bool {
    const block = toTextBlock(key)
    const removed = host.kv_delete(block)
    host.free(block)
    return removed == 1
  }

  /**
   * Adds to a counter, atomic over all threads.
   * @param ttlMs counted from the first increment
   * @returns the new value; the smallest i64 on failure
   */
  export function increment(key: string, delta: i64, ttlMs: i64): i64 {
    const block = toTextBlock(key)
    const value = host.kv_incr(block, delta, ttlMs)
    host.free(block)
    return value
  }
}
