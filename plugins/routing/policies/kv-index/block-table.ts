/**
 * Hash table from prefix hash to the holders of that prefix, which are small integers. Entry numbers are stable; freed
 * entries are reused.
 * @hot
 */

const FIRST_CAPACITY = 1_024
const NONE = -1

/** An entry has NO_HOLDER, one holder, or `MANY - i` if its holders are in set i. */
const NO_HOLDER = -1
const MANY = -2

export class BlockTable {
  /** Entries in use. */
  size = 0
  private lows = new Int32Array(FIRST_CAPACITY)
  private highs = new Int32Array(FIRST_CAPACITY)
  /** Next entry of the same chain, or of the free list. */
  private next = new Int32Array(FIRST_CAPACITY)
  private holders = new Int32Array(FIRST_CAPACITY)
  private heads = new Int32Array(FIRST_CAPACITY).fill(NONE)
  private readonly sets: number[][] = []
  private readonly freeSets: number[] = []
  private free = NONE
  private used = 0

  low(entry: number): number {
    return this.lows[entry]
  }

  high(entry: number): number {
    return this.highs[entry]
  }

  /** @returns the entry, or -1 */
  find(low: number, high: number): number {
    let entry = this.heads[low & (this.heads.length - 1)]
    while (entry !== NONE && (this.lows[entry] !== low || this.highs[entry] !== high))
      entry = this.next[entry]
    return entry
  }

  /** The entry of a prefix, created if missing. Add a holder immediately. */
  findOrAdd(low: number, high: number): number {
    const known = this.find(low, high)
    if (known !== NONE) return known
    if (this.free === NONE && this.used === this.lows.length) this.grow()
    let entry = this.free
    if (entry === NONE) entry = this.used++
    else this.free = this.next[entry]
    const chain = low & (this.heads.length - 1)
    this.lows[entry] = low
    this.highs[entry] = high
    this.holders[entry] = NO_HOLDER
    this.next[entry] = this.heads[chain]
    this.heads[chain] = entry
    this.size++
    return entry
  }

  addHolder(entry: number, holder: number): void {
    const first = this.holders[entry]
    if (first === NO_HOLDER) this.holders[entry] = holder
    else if (first <= MANY) {
      const set = this.sets[MANY - first]
      if (!set.includes(holder)) set.push(holder)
    } else if (first !== holder) {
      const set = this.freeSets.pop() ?? this.sets.push([]) - 1
      this.sets[set].push(first, holder)
      this.holders[entry] = MANY - set
    }
  }

  /** Deletes the entry with its last holder. */
  removeHolder(entry: number, holder: number): void {
    const first = this.holders[entry]
    if (first === holder) this.remove(entry)
    if (first > MANY) return
    const set = this.sets[MANY - first]
    const at = set.indexOf(holder)
    if (at < 0) return
    set[at] = set[set.length - 1]
    set.pop()
    if (set.length > 1) return
    this.holders[entry] = set[0]
    set.length = 0
    this.freeSets.push(MANY - first)
  }

  holderCount(entry: number): number {
    const first = this.holders[entry]
    return first <= MANY ? this.sets[MANY - first].length : 1
  }

  /** @param index below `holderCount` */
  holder(entry: number, index: number): number {
    const first = this.holders[entry]
    return first <= MANY ? this.sets[MANY - first][index] : first
  }

  private remove(entry: number): void {
    const chain = this.lows[entry] & (this.heads.length - 1)
    let at = this.heads[chain]
    if (at === entry) this.heads[chain] = this.next[entry]
    else {
      while (this.next[at] !== entry) at = this.next[at]
      this.next[at] = this.next[entry]
    }
    this.holders[entry] = NO_HOLDER
    this.next[entry] = this.free
    this.free = entry
    this.size--
  }

  private grow(): void {
    const capacity = this.lows.length * 2
    this.lows = widen(this.lows, capacity)
    this.highs = widen(this.highs, capacity)
    this.next = widen(this.next, capacity)
    this.holders = widen(this.holders, capacity)
    this.heads = new Int32Array(capacity).fill(NONE)
    // All entries are in use when the table grows.
    for (let entry = 0; entry < this.used; entry++) {
      const chain = this.lows[entry] & (capacity - 1)
      this.next[entry] = this.heads[chain]
      this.heads[chain] = entry
    }
  }
}

function widen(from: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const wide = new Int32Array(length)
  wide.set(from)
  return wide
}
