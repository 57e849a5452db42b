/** The initial state of an instance, which is restored chunk by chunk where a call has written. @hot */
import { CHUNK_SHIFT, MARK_REACH, PAGE_BYTES } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from '../rewrite/rewrite-module.ts'
import type { GuestExchange } from './guest-exchange.ts'

const CHUNK_BYTES = 1 << CHUNK_SHIFT
/** Longest store. */
const VECTOR_BYTES = 16
/** Stores may reach this far beyond the chunk that they mark, and `MARK_REACH` before it. */
const OVERLAP_BYTES = MARK_REACH + VECTOR_BYTES
const EMPTY_CHUNK = Buffer.alloc(MARK_REACH + CHUNK_BYTES + OVERLAP_BYTES)
/** Number of words for 16 pages. */
const MAX_WORDS = 64

interface KeptMemory {
  readonly memory: WebAssembly.Memory
  /** Offset of its chunks in the exchange memory. */
  readonly chunksAt: number
  readonly chunkCount: number
  /** Initial content by chunk, including the overlap; empty chunks are one object. */
  readonly firstChunks: readonly Uint8Array[]
  readonly bytes: Uint8Array
  marks: Marks
}

/** Marks of written chunks. */
interface Marks {
  /** The exchange memory, which is replaced when it grows. */
  readonly all: Uint8Array
  readonly chunks: Uint8Array
  /** The same bytes as words. */
  readonly words: Uint32Array
}

export class GuestSnapshot {
  readonly #memories: KeptMemory[]
  readonly #exchange: GuestExchange
  readonly #restore: () => void

  /**
   * Saves the current state. Only for modules that were rewritten with `restores`.
   *
   * @param hasHeadroom adds pages to the memories that calls may use without growing them; reads beyond the visible size
   *   return zeros instead of trapping
   */
  constructor(exports: WebAssembly.Exports, layout: Layout, exchange: GuestExchange, hasHeadroom: boolean) {
    this.#exchange = exchange
    this.#memories = layout.memories.map(({ chunks: chunksAt, headroomPages }, index) => {
      const memory = exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      if (hasHeadroom && headroomPages > 0) memory.grow(headroomPages)
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

  /** A memory has grown beyond its headroom, which cannot be undone. */
  get hasGrown(): boolean {
    return this.#memories.some(isGrown)
  }

  /** @returns false if the instance cannot be restored and must be discarded */
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

/** Growing a memory detaches its views, whose length is cheaper to check than the buffer. */
function isGrown({ bytes, memory }: KeptMemory): boolean {
  return bytes.length === 0 && bytes.buffer !== memory.buffer
}

/** For small memories a loop over words is faster than `indexOf`. */
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
  bytes.set(firstChunks[chunk], Math.max(0, chunk * CHUNK_BYTES - MARK_REACH))
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
    const start = Math.max(0, chunk * CHUNK_BYTES - MARK_REACH)
    const end = Math.min((chunk + 1) * CHUNK_BYTES + OVERLAP_BYTES, bytes.length)
    const content = first.subarray(start, end)
    const empty = end - start === EMPTY_CHUNK.length ? EMPTY_CHUNK : EMPTY_CHUNK.subarray(0, end - start)
    if (empty.subarray(0, content.length).equals(content)) chunks.push(empty)
    else chunks.push(new Uint8Array(bytes.subarray(start, end)))
  }
  return chunks
}

const EMPTY_PAGE = Buffer.alloc(PAGE_BYTES)

/** The bytes up to the last that is not zero; whole pages are compared first, since most are empty. */
function firstBytes(bytes: Uint8Array): Uint8Array {
  const all = Buffer.from(bytes.buffer)
  let last = all.length
  while (last > 0 && EMPTY_PAGE.equals(all.subarray(last - PAGE_BYTES, last))) last -= PAGE_BYTES
  while (last > 0 && all[last - 1] === 0) last--
  return bytes.subarray(0, last)
}
