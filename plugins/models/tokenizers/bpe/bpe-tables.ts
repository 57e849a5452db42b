/**
 * The pieces and merges of a byte-level vocabulary as two hash tables in memory that all threads share: 128 k pieces and
 * 280 k merges take 9.5 MB.
 */
import { TokenTable } from '../token-table.ts'

/** No id. */
export const NONE = 0xffff_ffff

/** Left id, right id, rank, id of the result. */
const MERGE_WORDS = 4

/** Memory of the tables, complete after the last `addMerge`. */
export interface BpeMemory {
  /** Of a `TokenTable`. */
  readonly pieces: SharedArrayBuffer
  readonly slots: SharedArrayBuffer
  readonly merges: SharedArrayBuffer
}

export class BpeTables {
  readonly memory: BpeMemory
  readonly pieces: TokenTable
  /** Ids plus one; zero where a slot is free. */
  readonly #slots: Uint32Array
  readonly #merges: Uint32Array
  readonly #slotMask: number
  readonly #mergeMask: number

  /** @param pieceCount, mergeCount how many `addPiece` and `addMerge` may be called for */
  static create(pieces: TokenTable, pieceCount: number, mergeCount: number): BpeTables {
    const slots = new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT * roomFor(pieceCount))
    const merges = new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT * MERGE_WORDS * roomFor(mergeCount))
    new Uint32Array(merges).fill(NONE)
    return new BpeTables({ pieces: pieces.memory, slots, merges })
  }

  constructor(memory: BpeMemory) {
    this.memory = memory
    this.pieces = new TokenTable(memory.pieces)
    this.#slots = new Uint32Array(memory.slots)
    this.#merges = new Uint32Array(memory.merges)
    this.#slotMask = this.#slots.length - 1
    this.#mergeMask = this.#merges.length / MERGE_WORDS - 1
  }

  addPiece(id: number): void {
    const bytes = this.pieces.bytes(id)
    let slot = hashOf(bytes, 0, bytes.length) & this.#slotMask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & this.#slotMask
    this.#slots[slot] = id + 1
  }

  /** The id of these bytes, or `NONE`. */
  pieceOf(bytes: Uint8Array, start: number, end: number): number {
    let slot = hashOf(bytes, start, end) & this.#slotMask
    for (;;) {
      const found = this.#slots[slot]
      if (found === 0) return NONE
      if (this.pieces.equals(found - 1, bytes, start, end)) return found - 1
      slot = (slot + 1) & this.#slotMask
    }
  }

  /** Of two merges of the same pair, the later one counts. */
  addMerge(left: number, right: number, rank: number, result: number): void {
    let at = this.#slotOf(left, right)
    while (this.#merges[at] !== NONE && (this.#merges[at] !== left || this.#merges[at + 1] !== right))
      at = this.#after(at)
    this.#merges[at] = left
    this.#merges[at + 1] = right
    this.#merges[at + 2] = rank
    this.#merges[at + 3] = result
  }

  /** Position of the merge of a pair, for `rankAt` and `resultAt`; -1 if there is none. */
  find(left: number, right: number): number {
    const merges = this.#merges
    let at = this.#slotOf(left, right)
    for (;;) {
      const found = merges[at]
      if (found === left && merges[at + 1] === right) return at
      if (found === NONE) return -1
      at = this.#after(at)
    }
  }

  rankAt(place: number): number {
    return this.#merges[place + 2]
  }

  resultAt(place: number): number {
    return this.#merges[place + 3]
  }

  #slotOf(left: number, right: number): number {
    const mixed = Math.imul(left, 0x9e37_79b1) ^ Math.imul(right, 0x85eb_ca6b)
    return ((Math.imul(mixed ^ (mixed >>> 15), 0x2c1b_3c6d) >>> 7) & this.#mergeMask) * MERGE_WORDS
  }

  #after(at: number): number {
    return (at + MERGE_WORDS) & (this.#merges.length - 1)
  }
}

/** FNV-1a, mixed once more. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c_9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at], 0x0100_0193)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Half empty, so that chains are short. */
function roomFor(count: number): number {
  let room = 16
  while (room < count * 1.6) room *= 2
  return room
}
