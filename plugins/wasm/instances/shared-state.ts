/**
 * Keys and values of guests in memory shared by all threads: bounded, with expiry, guarded by one lock. If a thread is
 * terminated while it holds the lock, the table is cleared.
 */
import { hash } from 'node:crypto'
import { LOCK_BYTES, SHORT_WAIT_MS, SharedLock } from './shared-lock.ts'

/** Word of the header: position of the eviction. */
const HAND = LOCK_BYTES / 4
const HEADER_BYTES = 64
const SLOT_BYTES = 128
/** Words of a slot. Continuation slots of a value hold bytes after the first two words. */
const NEXT_IN_BUCKET = 0
const NEXT_OF_VALUE = 1
const KIND = 2
const VALUE_BYTES = 3
const EXPIRES_OFFSET = 16
const KEY_OFFSET = 24
const KEY_BYTES = 32
const FIRST_DATA_OFFSET = KEY_OFFSET + KEY_BYTES
const NEXT_DATA_OFFSET = 8
const FIRST_DATA_BYTES = SLOT_BYTES - FIRST_DATA_OFFSET
const NEXT_DATA_BYTES = SLOT_BYTES - NEXT_DATA_OFFSET

const FREE = 0
const HEAD = 1
const CONTINUATION = 2

export const MAX_VALUE_BYTES = 65_536
export const MAX_KEY_BYTES = 1_024
const MAX_TTL_MS = 86_400_000
/** Result of a failed `increment`. */
export const NOT_COUNTED = -(2n ** 63n)
const COUNTER_BYTES = 8

export class SharedState {
  readonly #lock: SharedLock
  readonly #now: () => number
  readonly #header: Int32Array
  readonly #buckets: Int32Array
  readonly #words: Int32Array
  readonly #view: DataView
  readonly #bytes: Uint8Array
  readonly #slotCount: number
  readonly #slotsAt: number

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
    this.#now = now
    // A quarter as many buckets as slots, four bytes each: chains stay short.
    this.#slotCount = Math.floor((memory.byteLength - HEADER_BYTES) / (SLOT_BYTES + 1))
    const bucketCount = Math.max(1, Math.floor(this.#slotCount / 4))
    this.#slotsAt = Math.ceil((HEADER_BYTES + bucketCount * 4) / 8) * 8
    this.#slotCount = Math.floor((memory.byteLength - this.#slotsAt) / SLOT_BYTES)
    this.#header = new Int32Array(memory, 0, HEADER_BYTES / 4)
    this.#buckets = new Int32Array(memory, HEADER_BYTES, bucketCount)
    this.#words = new Int32Array(memory)
    this.#view = new DataView(memory)
    this.#bytes = new Uint8Array(memory)
    this.#lock = new SharedLock(memory, owner, waitMs, () => this.#clear())
  }

  /** @returns a copy of the value; null if there is none */
  get(key: Uint8Array): Uint8Array<ArrayBuffer> | null {
    return this.#lock.run(null, () => {
      const slot = this.#find(key)
      return slot < 0 ? null : this.#read(slot)
    })
  }

  /** @returns false if the value does not fit or the lock was not acquired */
  set(key: Uint8Array, value: Uint8Array, ttlMs: number): boolean {
    if (value.length > MAX_VALUE_BYTES) return false
    return this.#lock.run(false, () => {
      const old = this.#find(key)
      if (old >= 0) this.#release(old)
      return this.#insert(key, value, this.#now() + clampTtl(ttlMs))
    })
  }

  /** @returns true if there was a value */
  delete(key: Uint8Array): boolean {
    return this.#lock.run(false, () => {
      const slot = this.#find(key)
      if (slot >= 0) this.#release(slot)
      return slot >= 0
    })
  }

  /** Adds to a counter, an 8-byte little-endian value. The time to live counts from the first increment. */
  increment(key: Uint8Array, delta: bigint, ttlMs: number): bigint {
    return this.#lock.run(NOT_COUNTED, () => {
      const slot = this.#find(key)
      if (slot < 0) {
        const bytes = new Uint8Array(COUNTER_BYTES)
        new DataView(bytes.buffer).setBigInt64(0, delta, true)
        return this.#insert(key, bytes, this.#now() + clampTtl(ttlMs)) ? delta : NOT_COUNTED
      }
      return this.#add(slot, delta)
    })
  }

  /** Adds to a counter if it exists. */
  addToExisting(key: Uint8Array, delta: bigint): void {
    this.#lock.run(NOT_COUNTED, () => {
      const slot = this.#find(key)
      return slot < 0 ? NOT_COUNTED : this.#add(slot, delta)
    })
  }

  #add(slot: number, delta: bigint): bigint {
    const at = this.#offset(slot) + FIRST_DATA_OFFSET
    if (this.#word(slot, VALUE_BYTES) !== COUNTER_BYTES) return NOT_COUNTED
    const next = BigInt.asIntN(64, this.#view.getBigInt64(at, true) + delta)
    this.#view.setBigInt64(at, next, true)
    return next
  }

  /** Clears the table if a terminated thread held the lock. */
  releaseDead(owner: number): void {
    this.#lock.releaseDead(owner)
  }

  #find(key: Uint8Array): number {
    const bucket = this.#bucketOf(key)
    for (let slot = this.#buckets[bucket] - 1; slot >= 0; slot = this.#word(slot, NEXT_IN_BUCKET) - 1) {
      if (!this.#hasKey(slot, key)) continue
      if (this.#view.getFloat64(this.#offset(slot) + EXPIRES_OFFSET) > this.#now()) return slot
      this.#release(slot)
      return -1
    }
    return -1
  }

  #insert(key: Uint8Array, value: Uint8Array, expiresAtMs: number): boolean {
    const needed = 1 + Math.ceil(Math.max(0, value.length - FIRST_DATA_BYTES) / NEXT_DATA_BYTES)
    if (needed > this.#slotCount) return false
    const head = this.#take(HEAD)
    const bucket = this.#bucketOf(key)
    const at = this.#offset(head)
    this.#bytes.set(key, at + KEY_OFFSET)
    this.#view.setFloat64(at + EXPIRES_OFFSET, expiresAtMs)
    this.#setWord(head, VALUE_BYTES, value.length)
    this.#bytes.set(value.subarray(0, FIRST_DATA_BYTES), at + FIRST_DATA_OFFSET)
    let last = head
    for (let from = FIRST_DATA_BYTES; from < value.length; from += NEXT_DATA_BYTES) {
      const next = this.#take(CONTINUATION)
      this.#bytes.set(value.subarray(from, from + NEXT_DATA_BYTES), this.#offset(next) + NEXT_DATA_OFFSET)
      this.#setWord(last, NEXT_OF_VALUE, next + 1)
      last = next
    }
    // Linked last, so that eviction never finds an incomplete entry.
    this.#setWord(head, NEXT_IN_BUCKET, this.#buckets[bucket])
    this.#buckets[bucket] = head + 1
    this.#setWord(head, KIND, HEAD)
    return true
  }

  /** The next free slot; evicts the oldest entries if there is none. */
  #take(kind: number): number {
    for (;;) {
      const slot = this.#header[HAND] % this.#slotCount
      this.#header[HAND] = (slot + 1) % this.#slotCount
      if (this.#word(slot, KIND) === HEAD) this.#release(slot)
      if (this.#word(slot, KIND) !== FREE) continue
      // Becomes a head when it is linked.
      this.#setWord(slot, KIND, kind === HEAD ? CONTINUATION : kind)
      this.#setWord(slot, NEXT_OF_VALUE, 0)
      return slot
    }
  }

  #release(head: number): void {
    const at = this.#offset(head) + KEY_OFFSET
    const bucket = this.#bucketOf(this.#bytes.subarray(at, at + KEY_BYTES))
    let before = -1
    for (let slot = this.#buckets[bucket] - 1; slot >= 0 && slot !== head; ) {
      before = slot
      slot = this.#word(slot, NEXT_IN_BUCKET) - 1
    }
    const next = this.#word(head, NEXT_IN_BUCKET)
    if (before < 0) this.#buckets[bucket] = next
    else this.#setWord(before, NEXT_IN_BUCKET, next)
    for (let slot = head; slot >= 0; ) {
      const following = this.#word(slot, NEXT_OF_VALUE) - 1
      this.#setWord(slot, KIND, FREE)
      this.#setWord(slot, NEXT_OF_VALUE, 0)
      slot = following
    }
  }

  #read(head: number): Uint8Array<ArrayBuffer> {
    const value = new Uint8Array(this.#word(head, VALUE_BYTES))
    let at = this.#offset(head) + FIRST_DATA_OFFSET
    let slot = head
    for (let from = 0, room = FIRST_DATA_BYTES; from < value.length; room = NEXT_DATA_BYTES) {
      const count = Math.min(room, value.length - from)
      value.set(this.#bytes.subarray(at, at + count), from)
      from += count
      slot = this.#word(slot, NEXT_OF_VALUE) - 1
      at = this.#offset(slot) + NEXT_DATA_OFFSET
    }
    return value
  }

  #clear(): void {
    this.#buckets.fill(0)
    this.#header[HAND] = 0
    for (let slot = 0; slot < this.#slotCount; slot++) this.#setWord(slot, KIND, FREE)
  }

  #bucketOf(key: Uint8Array): number {
    return (key[0] | (key[1] << 8) | (key[2] << 16)) % this.#buckets.length
  }

  #hasKey(slot: number, key: Uint8Array): boolean {
    const at = this.#offset(slot) + KEY_OFFSET
    for (let i = 0; i < KEY_BYTES; i++) if (this.#bytes[at + i] !== key[i]) return false
    return true
  }

  #offset(slot: number): number {
    return this.#slotsAt + slot * SLOT_BYTES
  }

  #word(slot: number, word: number): number {
    return this.#words[this.#offset(slot) / 4 + word]
  }

  #setWord(slot: number, word: number, value: number): void {
    this.#words[this.#offset(slot) / 4 + word] = value
  }
}

/** Hash of a guest's key with its module and tenant, which cannot access each other's keys. */
export function stateKey(module: string, tenant: string | null, key: string): Uint8Array {
  // Length prefixes make the text unambiguous.
  const parts = [module, tenant ?? '', key].map((part) => `${part.length}:${part}`)
  return hash('sha256', `${tenant === null ? 0 : 1}${parts.join('')}`, 'buffer')
}

/** Replaces an invalid time to live by the longest, milliseconds. */
function clampTtl(ttlMs: number): number {
  return ttlMs > 0 && ttlMs < MAX_TTL_MS ? ttlMs : MAX_TTL_MS
}

/** Increments of inline calls, which are rolled back if the call is repeated in the pool. @hot */
export class PendingCounts {
  readonly #state: SharedState
  /** Keys and deltas, alternating. */
  readonly #made: (Uint8Array | bigint)[] = []

  constructor(state: SharedState) {
    this.#state = state
  }

  add(key: Uint8Array, delta: bigint): void {
    this.#made.push(key, delta)
  }

  commit(): void {
    if (this.#made.length > 0) this.#made.length = 0
  }

  /** Subtracts the increments since `commit`. Other calls may have read the values meanwhile. */
  rollback(): void {
    for (let at = 0; at < this.#made.length; at += 2)
      this.#state.addToExisting(this.#made[at] as Uint8Array, -(this.#made[at + 1] as bigint))
    this.commit()
  }
}
