/**
 * Index of the KV cache blocks of one model by worker, from the KV events of the engines. A block is identified by the
 * hash of the prompt up to its end.
 * @hot
 */
import type { KvBlock, KvEvent, WorkerEntry } from '#kernel'
import { finish, hashHigh, hashLow, hashWords } from '../hash64.ts'
import { runSliced } from '../sliced-sweep.ts'
import { BlockTable } from './block-table.ts'

/** Tokens per block until an engine reports it. */
const DEFAULT_BLOCK_SIZE = 16
/** Maximum blocks of a prompt that are matched. */
const MAX_MATCH_BLOCKS = 4_096
/** Blocks skipped at once if all holders of the first also hold the last. */
const STRIDE = 32
/** Maximum blocks stored per worker; more are ignored. */
const MAX_BLOCKS_PER_WORKER = 4_194_304
const ROOT_LOW = 0x51ed270b
const ROOT_HIGH = 0x2545f491

interface WorkerBlocks {
  readonly slot: number
  /** Number in the table; not reused, so that blocks of a cleared worker are not attributed to another. */
  readonly holder: number
  /** The engine's hash → entry of the table. */
  readonly entries: Map<bigint, number>
}

export class KvBlockIndex {
  /** Result of the last `match`: slots that hold the first block, and how many consecutive blocks each holds. */
  matchSlots = new Int32Array(64)
  matchBlocks = new Int32Array(64)
  private blockSize = DEFAULT_BLOCK_SIZE
  private isBlockSizeLearned = false
  private readonly table = new BlockTable()
  private readonly bySlot = new Map<number, WorkerBlocks>()
  /** By holder number; undefined for cleared workers. */
  private readonly byHolder: (WorkerBlocks | undefined)[] = []
  private readonly lows = new Int32Array(MAX_MATCH_BLOCKS)
  private readonly highs = new Int32Array(MAX_MATCH_BLOCKS)
  /** Holders of every block so far, in `match`. */
  private active = new Int32Array(64)
  /** By holder number: the last round that marked it. */
  private marks = new Int32Array(64)
  private round = 0
  private readonly purge: (work: () => boolean) => void

  /** @param purge runs work in slices until it returns false */
  constructor(purge: (work: () => boolean) => void) {
    this.purge = purge
  }

  /** Blocks held by any worker. */
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

  /** Removes all blocks of a worker: from lookups immediately, from memory in slices. */
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
   * Finds the workers that hold the beginning of a prompt.
   * @returns the number of workers in `matchSlots` and `matchBlocks`
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
        // A holder ends within the stride: check each block.
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

  /** Hashes the prompt at the end of each complete block. @returns the number of blocks */
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

  /** Blocks with an unknown parent are stored as the beginning of a prompt. */
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
      // Blocks after an incomplete block cannot be matched.
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

/** Model of workers that list none. */
const UNKNOWN_MODEL = 'unknown'

/** Block indexes of one thread by model; written by `kv-event-monitor.ts`, read by cache_aware. */
export class KvIndexes {
  private readonly byModel = new Map<string, KvBlockIndex>()

  /** The index of a model; null if no engine has reported a block. */
  find(model: string): KvBlockIndex | null {
    const index = this.byModel.get(model)
    return index === undefined || index.size === 0 ? null : index
  }

  /** The index of the worker's model, created if missing. Uses the first model name, because an engine runs one model. */
  of(worker: WorkerEntry): KvBlockIndex {
    const model = worker.models[0]?.id ?? UNKNOWN_MODEL
    let index = this.byModel.get(model)
    if (index === undefined) {
      index = new KvBlockIndex(runSliced)
      this.byModel.set(model, index)
    }
    return index
  }

  /** Deletes the indexes of models that no worker has. */
  keep(workers: readonly WorkerEntry[]): void {
    const served = new Set(workers.map((worker) => worker.models[0]?.id ?? UNKNOWN_MODEL))
    for (const model of this.byModel.keys()) if (!served.has(model)) this.byModel.delete(model)
  }
}
