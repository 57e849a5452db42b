/** Functions of the gateway: settings, values, log lines, metrics, time, random bytes and hashes. */
import * as host from './extism'
import { fromUtf8, takeBlock, toBlock, toTextBlock, toUtf8 } from './memory'

/** The settings with which the module was registered. */
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

/** Values and counters of the module and the tenant, which outlive the call. */
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

/** Lines of the gateway's log, with the name of the module and the request id. Never log user content. */
export namespace log {
  export function debug(text: string): void {
    const block = toTextBlock(text)
    host.log_debug(block)
    host.free(block)
  }

  export function info(text: string): void {
    const block = toTextBlock(text)
    host.log_info(block)
    host.free(block)
  }

  export function warn(text: string): void {
    const block = toTextBlock(text)
    host.log_warn(block)
    host.free(block)
  }

  export function error(text: string): void {
    const block = toTextBlock(text)
    host.log_error(block)
    host.free(block)
  }
}

/** Counters and histograms of the module in the gateway's metrics. `name{value}` has the label `label`. */
export namespace metric {
  /** Adds to a Prometheus series of the module. The number of names is limited: do not derive them from requests. */
  export function increment(name: string, delta: i64 = 1): bool {
    const block = toTextBlock(name)
    const counted = host.metric_inc(block, delta)
    host.free(block)
    return counted == 1
  }

  /** Adds a number from 0 to a histogram of the module. */
  export function observe(name: string, value: i64): bool {
    const block = toTextBlock(name)
    const observed = host.metric_observe(block, value)
    host.free(block)
    return observed == 1
  }

  /** Sets a gauge of the module, which has one value for all threads: the last one. */
  export function set(name: string, value: i64): bool {
    const block = toTextBlock(name)
    const isSet = host.metric_set(block, value)
    host.free(block)
    return isSet == 1
  }
}

/** Current time, milliseconds since 1970. `request.nowMs` is the start of the call and needs no host call. */
export function nowMs(): i64 {
  return host.now_ms()
}

/** Random bytes, hashes and comparison in constant time. */
export namespace crypto {
  /** @param count at most 1024 */
  export function randomBytes(count: i32): Uint8Array {
    return required(takeBlock(host.random_bytes(count)), 'random_bytes')
  }

  export function sha256(data: Uint8Array): Uint8Array {
    const block = toBlock(data)
    const digest = takeBlock(host.sha256(block))
    host.free(block)
    return required(digest, 'sha256')
  }

  export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
    const keyBlock = toBlock(key)
    const dataBlock = toBlock(data)
    const digest = takeBlock(host.hmac_sha256(keyBlock, dataBlock))
    host.free(keyBlock)
    host.free(dataBlock)
    return required(digest, 'hmac_sha256')
  }

  /** Compares in constant time for arrays of the same length. */
  export function equals(a: Uint8Array, b: Uint8Array): bool {
    let difference = a.length ^ b.length
    for (let i = 0, shared = min(a.length, b.length); i < shared; i++) difference |= a[i] ^ b[i]
    return difference == 0
  }
}

function required(bytes: Uint8Array | null, name: string): Uint8Array {
  if (bytes === null) throw new Error(`the host returned nothing for ${name}`)
  return bytes
}
