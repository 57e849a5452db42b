/**
 * How an instance was when it was made, and how it becomes so again: what the last call wrote is found by its chunks and
 * put back, whatever the module did. @hot
 */

import { CHUNK_SHIFT } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from '../rewrite/rewrite-module.ts'
import type { GuestExchange } from './guest-exchange.ts'

const CHUNK_BYTES = 1 << CHUNK_SHIFT
/** A store may reach that far beyond its chunk. */
const OVERLAP_BYTES = 16
const EMPTY_CHUNK = new Uint8Array(CHUNK_BYTES + OVERLAP_BYTES)
/** Nothing follows it. */
const LAST_EMPTY_CHUNK = EMPTY_CHUNK.subarray(0, CHUNK_BYTES)
/** 16 pages have so many. */
const MAX_WORDS = 64

interface KeptMemory {
  readonly memory: WebAssembly.Memory
  /** Offset of its chunks in the exchange memory. */
  readonly chunksAt: number
  readonly chunkCount: number
  /** First contents, chunk by chunk, each with what a store at its end reaches; those of nothing but zeros are one. */
  readonly firstChunks: readonly Uint8Array[]
  readonly bytes: Uint8Array
  marks: Marks
}

/** Which chunks were written to. */
interface Marks {
  /** The exchange memory that they lie in: another one once it has grown. */
  readonly all: Uint8Array
  readonly chunks: Uint8Array
  /** The same four at a time. */
  readonly words: Uint32Array
}

export class GuestSnapshot {
  readonly #memories: KeptMemory[]
  readonly #exchange: GuestExchange
  readonly #restore: () => void

  /**
   * Keeps what there is; only for modules that are rewritten for it.
   *
   * @param hasHeadroom memories get the pages that a call may take without really growing; what lies there reads as
   *   zeros where it would trap
   */
  constructor(exports: WebAssembly.Exports, layout: Layout, exchange: GuestExchange, hasHeadroom: boolean) {
    this.#exchange = exchange
    this.#memories = layout.memories.map(({ chunks: chunksAt, headroomPages }, index) => {
      const memory = exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      if (hasHeadroom) addPages(memory, headroomPages)
      const bytes = new Uint8Array(memory.buffer)
      const chunkCount = bytes.length >> CHUNK_SHIFT
      const all = exchange.chunks
      const firstChunks = toChunks(bytes, chunkCount)
      return { memory, chunksAt, chunkCount, firstChunks, bytes, marks: marksOf(all, chunksAt, chunkCount) }
    })
    this.#restore = exports[`${EXPORT_PREFIX}restore`] as () => void
    const save = exports[`${EXPORT_PREFIX}save`] as () => void
    save()
    for (const { marks } of this.#memories) marks.chunks.fill(0)
  }

  /** A memory has really grown: it is not made small again. */
  get hasGrown(): boolean {
    return this.#memories.some(isGrown)
  }

  /** @returns false when the instance has changed in a way that is not undone: it must not be used again */
  restore(): boolean {
    if (this.#exchange.isDirty) return false
    const all = this.#exchange.chunks
    for (const kept of this.#memories) {
      if (isGrown(kept)) return false
      if (kept.marks.all !== all) kept.marks = marksOf(all, kept.chunksAt, kept.chunkCount)
      restoreMemory(kept)
    }
    this.#restore()
    return this.#exchange.clear()
  }
}

/** A memory that really grew has another buffer, and leaves views of the former one empty, which is quicker to see. */
function isGrown({ bytes, memory }: KeptMemory): boolean {
  return bytes.length === 0 && bytes.buffer !== memory.buffer
}

/** Most memories are small, and a few words are looked at sooner than the library's own search is called. */
function restoreMemory(kept: KeptMemory): void {
  const { chunks, words } = kept.marks
  if (words.length <= MAX_WORDS) {
    for (let word = 0; word < words.length; word++) {
      if (words[word] === 0) continue
      const chunk = word * 4
      for (let place = chunk; place < chunk + 4; place++) if (chunks[place] !== 0) restoreChunk(kept, place)
    }
  } else
    for (let chunk = chunks.indexOf(1); chunk >= 0; chunk = chunks.indexOf(1, chunk + 1))
      restoreChunk(kept, chunk)
}

function restoreChunk({ firstChunks, bytes, marks }: KeptMemory, chunk: number): void {
  marks.chunks[chunk] = 0
  bytes.set(firstChunks[chunk], chunk * CHUNK_BYTES)
}

function marksOf(all: Uint8Array, chunksAt: number, chunkCount: number): Marks {
  const { buffer, byteOffset } = all
  return {
    all,
    chunks: new Uint8Array(buffer, byteOffset + chunksAt, chunkCount),
    words: new Uint32Array(buffer, byteOffset + chunksAt, chunkCount / 4),
  }
}

function toChunks(bytes: Uint8Array, chunkCount: number): Uint8Array[] {
  const first = firstBytes(bytes)
  const chunks: Uint8Array[] = []
  for (let chunk = 0; chunk < chunkCount; chunk++) {
    const start = chunk * CHUNK_BYTES
    const length = Math.min(CHUNK_BYTES + OVERLAP_BYTES, bytes.length - start)
    if (start >= first.length) chunks.push(length === EMPTY_CHUNK.length ? EMPTY_CHUNK : LAST_EMPTY_CHUNK)
    else {
      const content = new Uint8Array(length)
      content.set(first.subarray(start, start + length))
      chunks.push(content)
    }
  }
  return chunks
}

function addPages(memory: WebAssembly.Memory, pages: number): void {
  if (pages > 0) memory.grow(pages)
}

const PAGE_BYTES = 65_536
const EMPTY_PAGE = Buffer.alloc(PAGE_BYTES)

/** By whole pages first: most are empty, and there may be a thousand of them. */
function firstBytes(bytes: Uint8Array): Uint8Array {
  const all = Buffer.from(bytes.buffer)
  let last = all.length
  while (last > 0 && EMPTY_PAGE.equals(all.subarray(last - PAGE_BYTES, last))) last -= PAGE_BYTES
  while (last > 0 && all[last - 1] === 0) last--
  return bytes.slice(0, last)
}
