/**
 * Entries with a key, a value and an expiry in memory shared by all threads: fixed slots, chained by bucket. Callers hold
 * the lock of the memory.
 */
import { LOCK_BYTES } from './shared-lock.ts'

/** Words of the header. */
const HAND = LOCK_BYTES / 4
const USED = HAND + 1
const CLEARS = HAND + 2
/** Words for the owner of the table. */
export const OWN_WORDS = HAND + 3
const HEADER_BYTES = 64
export const SLOT_BYTES = 128
/** Words of a slot. Continuation slots of a value hold bytes after the first two words. */
const NEXT_IN_BUCKET = 0
const NEXT_OF_VALUE = 1
const KIND = 2
const VALUE_BYTES = 3
const EXPIRES_OFFSET = 16
const KEY_OFFSET = 24
const KEY_BYTES = 32
/** Notes of the owner of the table: four words and eight bytes. */
const NOTES_OFFSET = KEY_OFFSET + KEY_BYTES
const SUM_OFFSET = NOTES_OFFSET + 16
const FIRST_DATA_OFFSET = SUM_OFFSET + 8
const NEXT_DATA_OFFSET = 8
const FIRST_DATA_BYTES = SLOT_BYTES - FIRST_DATA_OFFSET
const NEXT_DATA_BYTES = SLOT_BYTES - NEXT_DATA_OFFSET

const FREE = 0
const HEAD = 1
const CONTINUATION = 2

/** A counter is a value of so many bytes. */
export const COUNTER_BYTES = 8

export class SlotTable {
  readonly slotCount: number
  readonly header: Int32Array
  readonly #buckets: Int32Array
  readonly #words: Int32Array
  readonly #view: DataView
  readonly #bytes: Uint8Array
  readonly #slotsAt: number

  constructor(memory: SharedArrayBuffer) {
    // A quarter as many buckets as slots, four bytes each: chains stay short.
    const atMost = Math.floor((memory.byteLength - HEADER_BYTES) / (SLOT_BYTES + 1))
    const bucketCount = Math.max(1, Math.floor(atMost / 4))
    this.#slotsAt = Math.ceil((HEADER_BYTES + bucketCount * 4) / 8) * 8
    this.slotCount = Math.floor((memory.byteLength - this.#slotsAt) / SLOT_BYTES)
    this.header = new Int32Array(memory, 0, HEADER_BYTES / 4)
    this.#buckets = new Int32Array(memory, HEADER_BYTES, bucketCount)
    this.#words = new Int32Array(memory)
    this.#view = new DataView(memory)
    this.#bytes = new Uint8Array(memory)
  }

  get usedSlots(): number {
    return this.header[USED]
  }

  /** Number of times that the table was cleared. */
  get clears(): number {
    return Atomics.load(this.header, CLEARS)
  }

  /** Heads of all entries. */
  *heads(): Generator<number> {
    for (let slot = 0; slot < this.slotCount; slot++) if (this.#word(slot, KIND) === HEAD) yield slot
  }

  /** @returns the head of the entry, -1 if there is none */
  find(key: Uint8Array): number {
    let slot = this.#buckets[this.#bucketOf(key)] - 1
    while (slot >= 0 && !this.#hasKey(slot, key)) slot = this.#word(slot, NEXT_IN_BUCKET) - 1
    return slot
  }

  /** Adds an entry, for which there must be slots; with `evicts`, the oldest entries make room. @returns its head */
  insert(key: Uint8Array, value: Uint8Array, expiresAtMs: number, evicts: boolean): number {
    const head = this.#take(evicts)
    const bucket = this.#bucketOf(key)
    const at = this.#offset(head)
    this.#bytes.set(key, at + KEY_OFFSET)
    this.#bytes.fill(0, at + NOTES_OFFSET, at + FIRST_DATA_OFFSET)
    this.#view.setFloat64(at + EXPIRES_OFFSET, expiresAtMs)
    this.#setWord(head, VALUE_BYTES, value.length)
    this.#bytes.set(value.subarray(0, FIRST_DATA_BYTES), at + FIRST_DATA_OFFSET)
    let last = head
    for (let from = FIRST_DATA_BYTES; from < value.length; from += NEXT_DATA_BYTES) {
      const next = this.#take(evicts)
      this.#bytes.set(value.subarray(from, from + NEXT_DATA_BYTES), this.#offset(next) + NEXT_DATA_OFFSET)
      this.#setWord(last, NEXT_OF_VALUE, next + 1)
      last = next
    }
    // Linked last, so that eviction never finds an incomplete entry.
    this.#setWord(head, NEXT_IN_BUCKET, this.#buckets[bucket])
    this.#buckets[bucket] = head + 1
    this.#setWord(head, KIND, HEAD)
    return head
  }

  release(head: number): void {
    const bucket = this.#bucketOf(this.keyOf(head))
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
      this.header[USED]--
      slot = following
    }
  }

  /** @returns a copy of the value */
  read(head: number): Uint8Array<ArrayBuffer> {
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

  /** @returns the new value of a counter; null if the value is none */
  add(head: number, delta: bigint): bigint | null {
    if (this.#word(head, VALUE_BYTES) !== COUNTER_BYTES) return null
    const at = this.#offset(head) + FIRST_DATA_OFFSET
    const next = BigInt.asIntN(64, this.#view.getBigInt64(at, true) + delta)
    this.#view.setBigInt64(at, next, true)
    return next
  }

  /** @returns a view */
  keyOf(head: number): Uint8Array {
    const at = this.#offset(head) + KEY_OFFSET
    return this.#bytes.subarray(at, at + KEY_BYTES)
  }

  expiresAtMs(head: number): number {
    return this.#view.getFloat64(this.#offset(head) + EXPIRES_OFFSET)
  }

  slotsOf(head: number): number {
    return slotsFor(this.#word(head, VALUE_BYTES))
  }

  /** @param place 0 to 3 */
  note(head: number, place: number): number {
    return this.#word(head, NOTES_OFFSET / 4 + place)
  }

  setNote(head: number, place: number, value: number): void {
    this.#setWord(head, NOTES_OFFSET / 4 + place, value)
  }

  sum(head: number): bigint {
    return this.#view.getBigInt64(this.#offset(head) + SUM_OFFSET, true)
  }

  setSum(head: number, value: bigint): void {
    this.#view.setBigInt64(this.#offset(head) + SUM_OFFSET, value, true)
  }

  clear(): void {
    this.#buckets.fill(0)
    this.header[HAND] = 0
    this.header[USED] = 0
    for (let slot = 0; slot < this.slotCount; slot++) {
      this.#setWord(slot, KIND, FREE)
      this.#setWord(slot, NEXT_OF_VALUE, 0)
    }
    Atomics.add(this.header, CLEARS, 1)
  }

  /** The next free slot, as a continuation; a head becomes one when it is linked. */
  #take(evicts: boolean): number {
    for (;;) {
      const slot = this.header[HAND] % this.slotCount
      this.header[HAND] = (slot + 1) % this.slotCount
      if (evicts && this.#word(slot, KIND) === HEAD) this.release(slot)
      if (this.#word(slot, KIND) !== FREE) continue
      this.#setWord(slot, KIND, CONTINUATION)
      this.#setWord(slot, NEXT_OF_VALUE, 0)
      this.header[USED]++
      return slot
    }
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

/** Slots of an entry whose value has so many bytes. */
export function slotsFor(valueBytes: number): number {
  return 1 + Math.ceil(Math.max(0, valueBytes - FIRST_DATA_BYTES) / NEXT_DATA_BYTES)
}
