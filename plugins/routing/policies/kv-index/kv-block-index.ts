/**
 * Which worker has which blocks of one model in its KV cache, as the engines tell it, and how much of a prompt each
 * worker has. A block is known by the hash of the whole prompt up to its end, so its position is part of its name.
 * @hot
 */
import type { KvBlock, KvEvent } from '#kernel'
import { finish, hashHigh, hashLow, hashWords } from '../hash64.ts'
import { BlockTable } from './block-table.ts'

/** Blocks of a prompt that are looked at. */
const MAX_MATCH_BLOCKS = 4_096
/** Blocks passed over at once where all that hold the near one hold the far one too. */
const STRIDE = 32
/** Blocks that one worker may tell of; beyond that, further ones are not noted. */
const MAX_BLOCKS_PER_WORKER = 4_194_304
const ROOT_LOW = 0x51ed270b
const ROOT_HIGH = 0x2545f491

interface WorkerBlocks {
  readonly slot: number
  /** Number in the table; never used again, so what is left of a worker that was cleared belongs to nobody. */
  readonly holder: number
  /** The engine's hash → entry of the table. */
  readonly entries: Map<bigint, number>
}

export class KvBlockIndex {
  /** Result of the last `match`: slots that hold the first block, and how many consecutive blocks each holds. */
  matchSlots = new Int32Array(64)
  matchBlocks = new Int32Array(64)
  /** Tokens a block, until an engine tells. */
  private blockSize: number
  private isBlockSizeLearned = false
  private readonly table = new BlockTable()
  private readonly bySlot = new Map<number, WorkerBlocks>()
  /** By holder number; undefined for those cleared. */
  private readonly byHolder: (WorkerBlocks | undefined)[] = []
  private readonly lows = new Int32Array(MAX_MATCH_BLOCKS)
  private readonly highs = new Int32Array(MAX_MATCH_BLOCKS)
  /** Holders that have every block so far, in `match`. */
  private active = new Int32Array(64)
  /** By holder number: the round in which it was last seen in a set. */
  private marks = new Int32Array(64)
  private round = 0
  private readonly purge: (work: () => boolean) => void

  /**
   * @param blockSize tokens a block until the first stored event says
   * @param purge runs work in slices until it returns false
   */
  constructor(blockSize: number, purge: (work: () => boolean) => void) {
    this.blockSize = blockSize
    this.purge = purge
  }

  /** Blocks known to be held by anybody. */
  get size(): number {
    return this.table.size
  }

  /** Blocks that a worker holds. */
  blocksOf(slot: number): number {
    return this.bySlot.get(slot)?.entries.size ?? 0
  }

  apply(slot: number, event: KvEvent): void {
    if (event.kind === 'cleared') this.clear(slot)
    else if (event.kind === 'removed') this.removed(slot, event.hashes)
    else this.stored(slot, event.parentHash, event.blocks, event.blockSize)
  }

  /** Forgets all blocks of a worker: it says so, or it left. Look-ups do so at once, the memory follows in slices. */
  clear(slot: number): void {
    const worker = this.bySlot.get(slot)
    if (worker === undefined) return
    this.bySlot.delete(slot)
    this.byHolder[worker.holder] = undefined
    const left = worker.entries.values()
    this.purge(() => {
      for (let i = 0; i < 256; i++) {
        const { done, value } = left.next()
        if (done === true) return false
        this.table.removeHolder(value, worker.holder)
      }
      return true
    })
  }

  /**
   * Finds who has the beginning of a prompt.
   * @returns how many workers are in `matchSlots` and `matchBlocks`
   */
  match(tokenIds: Uint32Array): number {
    const blocks = this.hashBlocks(tokenIds)
    if (blocks === 0) return 0
    let activeCount = this.begin()
    let matches = 0
    let at = 0
    while (activeCount > 0 && at < blocks - 1) {
      const target = Math.min(at + STRIDE, blocks - 1)
      this.mark(target)
      if (!this.areAllMarked(activeCount)) {
        // Somebody ends in between: step by step.
        for (let block = at + 1; block <= target && activeCount > 0; block++) {
          this.mark(block)
          let kept = 0
          for (let i = 0; i < activeCount; i++) {
            const holder = this.active[i]
            if (this.marks[holder] === this.round) this.active[kept++] = holder
            else matches = this.addMatch(matches, holder, block)
          }
          activeCount = kept
        }
      }
      at = target
    }
    for (let i = 0; i < activeCount; i++) matches = this.addMatch(matches, this.active[i], blocks)
    return matches
  }

  /** Hashes of the prompt at the end of each whole block. @returns how many */
  private hashBlocks(tokenIds: Uint32Array): number {
    const blocks = Math.min(MAX_MATCH_BLOCKS, Math.floor(tokenIds.length / this.blockSize))
    let low = ROOT_LOW
    let high = ROOT_HIGH
    for (let block = 0; block < blocks; block++) {
      const from = block * this.blockSize
      hashWords(tokenIds, from, from + this.blockSize, low, high)
      finish(hashLow, hashHigh, this.blockSize)
      low = hashLow
      high = hashHigh
      this.lows[block] = low
      this.highs[block] = high
    }
    return blocks
  }

  /** Makes the holders of the first block active. */
  private begin(): number {
    const entry = this.table.find(this.lows[0], this.highs[0])
    if (entry < 0) return 0
    const count = this.table.holderCount(entry)
    if (count > this.active.length) {
      this.active = new Int32Array(count * 2)
      this.matchSlots = new Int32Array(count * 2)
      this.matchBlocks = new Int32Array(count * 2)
    }
    let activeCount = 0
    for (let i = 0; i < count; i++) {
      const holder = this.table.holder(entry, i)
      if (this.byHolder[holder] !== undefined) this.active[activeCount++] = holder
    }
    return activeCount
  }

  /** Marks all holders of a block with a new round. */
  private mark(block: number): void {
    if (this.marks.length < this.byHolder.length) this.marks = new Int32Array(this.byHolder.length * 2)
    this.round = (this.round + 1) | 0
    const entry = this.table.find(this.lows[block], this.highs[block])
    if (entry < 0) return
    const count = this.table.holderCount(entry)
    for (let i = 0; i < count; i++) this.marks[this.table.holder(entry, i)] = this.round
  }

  private areAllMarked(activeCount: number): boolean {
    for (let i = 0; i < activeCount; i++) if (this.marks[this.active[i]] !== this.round) return false
    return true
  }

  private addMatch(matches: number, holder: number, blocks: number): number {
    const worker = this.byHolder[holder]
    if (worker === undefined) return matches
    this.matchSlots[matches] = worker.slot
    this.matchBlocks[matches] = blocks
    return matches + 1
  }

  /** An unknown parent counts as none, so such blocks begin a prompt. */
  private stored(slot: number, parent: bigint | null, blocks: readonly KvBlock[], blockSize: number): void {
    if (blockSize > 0 && !this.isBlockSizeLearned) {
      this.blockSize = blockSize
      this.isBlockSizeLearned = true
    }
    const worker = this.bySlot.get(slot) ?? this.addWorker(slot)
    const before = parent === null ? undefined : worker.entries.get(parent)
    let low = before === undefined ? ROOT_LOW : this.table.low(before)
    let high = before === undefined ? ROOT_HIGH : this.table.high(before)
    for (const { hash, tokenIds } of blocks) {
      // What is behind a part of a block cannot be asked for.
      if (tokenIds.length !== this.blockSize || worker.entries.size >= MAX_BLOCKS_PER_WORKER) return
      hashWords(tokenIds, 0, tokenIds.length, low, high)
      finish(hashLow, hashHigh, tokenIds.length)
      low = hashLow
      high = hashHigh
      if (worker.entries.has(hash)) continue
      const entry = this.table.findOrAdd(low, high)
      this.table.addHolder(entry, worker.holder)
      worker.entries.set(hash, entry)
    }
  }

  private removed(slot: number, hashes: readonly bigint[]): void {
    const worker = this.bySlot.get(slot)
    if (worker === undefined) return
    for (const hash of hashes) {
      const entry = worker.entries.get(hash)
      if (entry === undefined) continue
      worker.entries.delete(hash)
      this.table.removeHolder(entry, worker.holder)
    }
  }

  private addWorker(slot: number): WorkerBlocks {
    const worker = { slot, holder: this.byHolder.length, entries: new Map<bigint, number>() }
    this.byHolder.push(worker)
    this.bySlot.set(slot, worker)
    return worker
  }
}
