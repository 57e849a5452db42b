/**
 * Merges the bytes of a word into tokens: always the pair of the lowest rank, of equal ones the leftmost. Words are
 * short; for long ones a heap keeps the cost near linear.
 */
import type { BpeTables } from './bpe-tables.ts'

/** Bytes from which on the heap is cheaper than looking at all pairs. */
const LONG = 96
/** Ranks are kept above places in one number: 2^31 places and 2^22 ranks fit. */
const PLACES = 2 ** 31
const NO_RANK = 0xffff_ffff

const tokens = new Uint32Array(LONG)
const merges = new Int32Array(LONG)

/** Appends the ids to `out`. @param ids of single bytes */
export function mergeWord(
  tables: BpeTables,
  ids: Uint32Array,
  bytes: Uint8Array,
  length: number,
  out: number[],
): void {
  if (length > LONG) mergeLong(tables, ids, bytes, length, out)
  else mergeShort(tables, ids, bytes, length, out)
}

function mergeShort(
  tables: BpeTables,
  ids: Uint32Array,
  bytes: Uint8Array,
  length: number,
  out: number[],
): void {
  let count = length
  for (let at = 0; at < count; at++) tokens[at] = ids[bytes[at]]
  for (let at = 0; at + 1 < count; at++) merges[at] = tables.find(tokens[at], tokens[at + 1])
  while (count > 1) {
    let best = -1
    let bestRank = NO_RANK
    for (let at = 0; at + 1 < count; at++) {
      if (merges[at] < 0) continue
      const rank = tables.rankAt(merges[at])
      if (rank < bestRank) {
        best = at
        bestRank = rank
      }
    }
    if (best < 0) break
    tokens[best] = tables.resultAt(merges[best])
    count--
    for (let at = best + 1; at < count; at++) {
      tokens[at] = tokens[at + 1]
      merges[at - 1] = merges[at]
    }
    if (best > 0) merges[best - 1] = tables.find(tokens[best - 1], tokens[best])
    if (best + 1 < count) merges[best] = tables.find(tokens[best], tokens[best + 1])
  }
  for (let at = 0; at < count; at++) out.push(tokens[at])
}

function mergeLong(
  tables: BpeTables,
  ids: Uint32Array,
  bytes: Uint8Array,
  length: number,
  out: number[],
): void {
  const token = new Uint32Array(length)
  const next = new Int32Array(length)
  const previous = new Int32Array(length)
  const heap = new MergeHeap(length)
  const offer = (at: number) => {
    const right = next[at]
    const merge = right < length ? tables.find(token[at], token[right]) : -1
    if (merge >= 0) heap.push(tables.rankAt(merge) * PLACES + at)
  }
  for (let at = 0; at < length; at++) {
    token[at] = ids[bytes[at]]
    next[at] = at + 1
    previous[at] = at - 1
  }
  const isGone = new Uint8Array(length)
  for (let at = 0; at < length; at++) offer(at)
  while (heap.size > 0) {
    const top = heap.pop()
    const rank = Math.floor(top / PLACES)
    const at = top - rank * PLACES
    const right = next[at]
    if (isGone[at] === 1 || right >= length) continue
    const merge = tables.find(token[at], token[right])
    // One of the pair may have been merged with another token since.
    if (merge < 0 || tables.rankAt(merge) !== rank) continue
    token[at] = tables.resultAt(merge)
    isGone[right] = 1
    next[at] = next[right]
    if (next[at] < length) previous[next[at]] = at
    offer(at)
    if (previous[at] >= 0) offer(previous[at])
  }
  for (let at = 0; at < length; at = next[at]) out.push(token[at])
}

/** The lowest number first. */
class MergeHeap {
  #numbers: Float64Array
  size = 0

  constructor(room: number) {
    this.#numbers = new Float64Array(room)
  }

  push(number: number): void {
    if (this.size === this.#numbers.length) {
      const larger = new Float64Array(2 * this.size)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    const numbers = this.#numbers
    let at = this.size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (numbers[parent] <= number) break
      numbers[at] = numbers[parent]
      at = parent
    }
    numbers[at] = number
  }

  /** Of a heap that is not empty. */
  pop(): number {
    const numbers = this.#numbers
    const top = numbers[0]
    const last = numbers[--this.size]
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.size) break
      if (child + 1 < this.size && numbers[child + 1] < numbers[child]) child++
      if (numbers[child] >= last) break
      numbers[at] = numbers[child]
      at = child
    }
    numbers[at] = last
    return top
  }
}
