/** What the host functions of the runner keep: values, counters, metrics, a clock and randomness that can be repeated. */
import { createHash } from 'node:crypto'

/** Structured-clonable, so that it survives a thread that was stopped. */
export interface HostSnapshot {
  readonly values: ReadonlyMap<string, StoredValue>
  /** Sum of each metric that the module counted. */
  readonly metrics: ReadonlyMap<string, number>
  /** How many random bytes were taken. */
  readonly randomOffset: number
}

interface StoredValue {
  readonly bytes: Uint8Array
  readonly expiresAtMs: number
}

export const EMPTY_SNAPSHOT: HostSnapshot = Object.freeze({
  values: new Map(),
  metrics: new Map(),
  randomOffset: 0,
})

/** Longest life of a value or counter. */
const MAX_TTL_MS = 24 * 3_600_000
const MAX_KEY_BYTES = 1_024
const MAX_VALUE_BYTES = 64 * 1024
const MAX_RANDOM_BYTES = 1_024
/** What kv_incr gives when it could not count. */
const COUNT_FAILED = -(2n ** 63n)
const COUNTER_BYTES = 8
const METRIC_NAME = /^[a-z][a-z0-9_]{0,63}$/
const MAX_METRICS = 32

export class HostState {
  nowMs = 0
  tenant: string | null = null
  readonly #values: Map<string, StoredValue>
  readonly #metrics: Map<string, number>
  readonly #seed: string
  #randomOffset: number

  /** @param seed the same seed gives the same random bytes */
  constructor(snapshot: HostSnapshot, seed: string) {
    this.#values = new Map(snapshot.values)
    this.#metrics = new Map(snapshot.metrics)
    this.#randomOffset = snapshot.randomOffset
    this.#seed = seed
  }

  snapshot(): HostSnapshot {
    return {
      values: new Map(this.#values),
      metrics: new Map(this.#metrics),
      randomOffset: this.#randomOffset,
    }
  }

  get(key: string): Uint8Array | null {
    return this.#find(key)?.bytes ?? null
  }

  set(key: string, bytes: Uint8Array, ttlMs: bigint): boolean {
    if (!isKey(key) || bytes.length > MAX_VALUE_BYTES) return false
    this.#values.set(this.#place(key), { bytes: Uint8Array.from(bytes), expiresAtMs: this.#expiry(ttlMs) })
    return true
  }

  delete(key: string): boolean {
    const had = this.#find(key) !== null
    this.#values.delete(this.#place(key))
    return had
  }

  /** A counter is a value of eight bytes, little-endian. */
  increment(key: string, delta: bigint, ttlMs: bigint): bigint {
    if (!isKey(key)) return COUNT_FAILED
    const found = this.#find(key)
    if (found !== null && found.bytes.length !== COUNTER_BYTES) return COUNT_FAILED
    const before = found === null ? 0n : Buffer.from(found.bytes).readBigInt64LE()
    const bytes = Buffer.alloc(COUNTER_BYTES)
    const value = BigInt.asIntN(64, before + delta)
    bytes.writeBigInt64LE(value)
    const expiresAtMs = found?.expiresAtMs ?? this.#expiry(ttlMs)
    this.#values.set(this.#place(key), { bytes: Uint8Array.from(bytes), expiresAtMs })
    return value
  }

  count(name: string, delta: bigint): boolean {
    if (!METRIC_NAME.test(name) || delta < 0n) return false
    if (!this.#metrics.has(name) && this.#metrics.size >= MAX_METRICS) return false
    this.#metrics.set(name, (this.#metrics.get(name) ?? 0) + Number(delta))
    return true
  }

  random(count: bigint): Uint8Array | null {
    if (count <= 0n || count > MAX_RANDOM_BYTES) return null
    const bytes = new Uint8Array(Number(count))
    for (let i = 0; i < bytes.length; i += 32) {
      const block = createHash('sha256')
        .update(`${this.#seed}:${this.#randomOffset++}`)
        .digest()
      bytes.set(block.subarray(0, Math.min(32, bytes.length - i)), i)
    }
    return bytes
  }

  #find(key: string): StoredValue | null {
    const found = this.#values.get(this.#place(key))
    return found === undefined || found.expiresAtMs <= this.nowMs ? null : found
  }

  #place(key: string): string {
    return `${this.tenant === null ? 0 : 1}${this.tenant}\n${key}`
  }

  #expiry(ttlMs: bigint): number {
    return this.nowMs + (ttlMs > 0n && ttlMs < MAX_TTL_MS ? Number(ttlMs) : MAX_TTL_MS)
  }
}

function isKey(key: string): boolean {
  return Buffer.byteLength(key) <= MAX_KEY_BYTES
}
