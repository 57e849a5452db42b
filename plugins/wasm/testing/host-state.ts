/** Values, metrics, clock and random bytes of the runner's host functions; a run with the same seed repeats exactly. */
import { createHash } from 'node:crypto'
import type { GuestState } from '../instances/host-functions.ts'
import { COUNTER_BYTES, clampTtl, MAX_VALUE_BYTES, NOT_COUNTED } from '../instances/shared-state.ts'

/** Structured-clonable: passed on to the next thread when one was stopped. */
export interface HostSnapshot {
  readonly values: ReadonlyMap<string, StoredValue>
  /** Sum of each metric that the module counted. */
  readonly metrics: ReadonlyMap<string, number>
  /** Number of blocks of random bytes handed out. */
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

const BLOCK_BYTES = 32

export class HostState implements GuestState {
  nowMs = 0
  readonly #values: Map<string, StoredValue>
  readonly #metrics: Map<string, number>
  readonly #seed: string
  #randomOffset: number

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

  get(key: Uint8Array): Uint8Array | null {
    return this.#find(key)?.bytes ?? null
  }

  set(key: Uint8Array, bytes: Uint8Array, ttlMs: number): boolean {
    if (bytes.length > MAX_VALUE_BYTES) return false
    const expiresAtMs = this.nowMs + clampTtl(ttlMs)
    this.#values.set(nameOf(key), { bytes: Uint8Array.from(bytes), expiresAtMs })
    return true
  }

  delete(key: Uint8Array): boolean {
    const had = this.#find(key) !== null
    this.#values.delete(nameOf(key))
    return had
  }

  increment(key: Uint8Array, delta: bigint, ttlMs: number): bigint {
    const found = this.#find(key)
    if (found !== null && found.bytes.length !== COUNTER_BYTES) return NOT_COUNTED
    const before = found === null ? 0n : Buffer.from(found.bytes).readBigInt64LE()
    const bytes = Buffer.alloc(COUNTER_BYTES)
    const value = BigInt.asIntN(64, before + delta)
    bytes.writeBigInt64LE(value)
    const expiresAtMs = found?.expiresAtMs ?? this.nowMs + clampTtl(ttlMs)
    this.#values.set(nameOf(key), { bytes: Uint8Array.from(bytes), expiresAtMs })
    return value
  }

  addMetrics(counted: ReadonlyMap<string, number>): void {
    for (const [name, delta] of counted) this.#metrics.set(name, (this.#metrics.get(name) ?? 0) + delta)
  }

  mayCount(name: string, maxNames: number): boolean {
    if (!this.#metrics.has(name) && this.#metrics.size >= maxNames) return false
    this.addMetrics(new Map([[name, 0]]))
    return true
  }

  randomBytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count)
    for (let i = 0; i < count; i += BLOCK_BYTES) {
      const block = createHash('sha256')
        .update(`${this.#seed}:${this.#randomOffset++}`)
        .digest()
      bytes.set(block.subarray(0, Math.min(BLOCK_BYTES, count - i)), i)
    }
    return bytes
  }

  #find(key: Uint8Array): StoredValue | null {
    const found = this.#values.get(nameOf(key))
    return found === undefined || found.expiresAtMs <= this.nowMs ? null : found
  }
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}
