/**
 * Keys and values of guests in memory shared by all threads: bounded, with expiry, guarded by one lock. If a thread is
 * terminated while it holds the lock, the table is cleared.
 */
import { hash } from 'node:crypto'
import { SHORT_WAIT_MS, SharedLock } from './shared-lock.ts'
import { COUNTER_BYTES, SlotTable, slotsFor } from './slot-table.ts'

export const MAX_VALUE_BYTES = 65_536
export const MAX_KEY_BYTES = 1_024
const MAX_TTL_MS = 86_400_000
/** Result of a failed `increment`. */
export const NOT_COUNTED = -(2n ** 63n)

/** What host functions need of a state. */
export interface ModuleState {
  /** @returns a copy of the value; null if there is none */
  get(key: Uint8Array): Uint8Array<ArrayBuffer> | null
  /** @returns false if the value does not fit or the lock was not acquired */
  set(key: Uint8Array, value: Uint8Array, ttlMs: number, tenant: string | null): boolean
  /** @returns true if there was a value */
  delete(key: Uint8Array): boolean
  /** Adds to a counter, an 8-byte little-endian value. The time to live counts from the first increment. */
  increment(key: Uint8Array, delta: bigint, ttlMs: number, tenant: string | null): bigint
  /** Adds to a counter if it exists. */
  addToExisting(key: Uint8Array, delta: bigint): void
}

export class SharedState implements ModuleState {
  readonly owner: number
  readonly waitMs: number
  readonly #lock: SharedLock
  readonly #now: () => number
  readonly #table: SlotTable

  /**
   * @param owner unique number of this thread
   * @param waitMs how long a call waits for the lock
   * @param now milliseconds since 1970
   */
  constructor(
    memory: SharedArrayBuffer,
    owner: number,
    waitMs = SHORT_WAIT_MS,
    now: () => number = Date.now,
  ) {
    this.owner = owner
    this.waitMs = waitMs
    this.#now = now
    this.#table = new SlotTable(memory)
    this.#lock = new SharedLock(memory, owner, waitMs, () => this.#table.clear())
  }

  get(key: Uint8Array): Uint8Array<ArrayBuffer> | null {
    return this.#lock.run(null, () => {
      const head = this.#find(key)
      return head < 0 ? null : this.#table.read(head)
    })
  }

  set(key: Uint8Array, value: Uint8Array, ttlMs: number): boolean {
    if (value.length > MAX_VALUE_BYTES) return false
    return this.#lock.run(false, () => {
      const old = this.#find(key)
      if (old >= 0) this.#table.release(old)
      return this.#insert(key, value, ttlMs)
    })
  }

  delete(key: Uint8Array): boolean {
    return this.#lock.run(false, () => {
      const head = this.#find(key)
      if (head >= 0) this.#table.release(head)
      return head >= 0
    })
  }

  increment(key: Uint8Array, delta: bigint, ttlMs: number): bigint {
    return this.#lock.run(NOT_COUNTED, () => {
      const head = this.#find(key)
      if (head >= 0) return this.#table.add(head, delta) ?? NOT_COUNTED
      return this.#insert(key, counter(delta), ttlMs) ? delta : NOT_COUNTED
    })
  }

  addToExisting(key: Uint8Array, delta: bigint): void {
    this.#lock.run(null, () => {
      const head = this.#find(key)
      return head < 0 ? null : this.#table.add(head, delta)
    })
  }

  /** Clears the table if a terminated thread held the lock. */
  releaseDead(owner: number): void {
    this.#lock.releaseDead(owner)
  }

  #find(key: Uint8Array): number {
    const head = this.#table.find(key)
    if (head < 0 || this.#table.expiresAtMs(head) > this.#now()) return head
    this.#table.release(head)
    return -1
  }

  #insert(key: Uint8Array, value: Uint8Array, ttlMs: number): boolean {
    if (slotsFor(value.length) > this.#table.slotCount) return false
    this.#table.insert(key, value, this.#now() + clampTtl(ttlMs, MAX_TTL_MS), true)
    return true
  }
}

/** Hash of a guest's key with its module and tenant, which cannot access each other's keys. */
export function stateKey(module: string, tenant: string | null, key: string): Uint8Array {
  // Length prefixes make the text unambiguous.
  const parts = [module, tenant ?? '', key].map((part) => `${part.length}:${part}`)
  return hash('sha256', `${tenant === null ? 0 : 1}${parts.join('')}`, 'buffer')
}

export function counter(value: bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(COUNTER_BYTES)
  new DataView(bytes.buffer).setBigInt64(0, value, true)
  return bytes
}

/** Replaces an invalid time to live by the longest, milliseconds. */
export function clampTtl(ttlMs: number, longestMs: number): number {
  return ttlMs > 0 && ttlMs < longestMs ? ttlMs : longestMs
}

/** Increments of inline calls, which are rolled back if the call is repeated in the pool. @hot */
export class PendingCounts {
  /** States, keys and deltas in turn. */
  readonly #made: (ModuleState | Uint8Array | bigint)[] = []

  add(state: ModuleState, key: Uint8Array, delta: bigint): void {
    this.#made.push(state, key, delta)
  }

  commit(): void {
    if (this.#made.length > 0) this.#made.length = 0
  }

  /** Subtracts the increments since `commit`. Other calls may have read the values meanwhile. */
  rollback(): void {
    for (let at = 0; at < this.#made.length; at += 3)
      (this.#made[at] as ModuleState).addToExisting(
        this.#made[at + 1] as Uint8Array,
        -(this.#made[at + 2] as bigint),
      )
    this.commit()
  }
}
