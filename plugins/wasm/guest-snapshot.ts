/**
 * How an instance was when it was made, and how it becomes so again: what the last call wrote is found by its cards and
 * put back, whatever the module did. @hot
 */
import type { GuestExchange } from './guest-exchange.ts'
import { CARD_SHIFT } from './rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from './rewrite/rewrite-module.ts'

const CARD_BYTES = 1 << CARD_SHIFT
/** A store may reach that far beyond its card. */
const OVERLAP_BYTES = 16

interface KeptMemory {
  readonly memory: WebAssembly.Memory
  /** Of its cards in the exchange memory. */
  readonly cards: number
  readonly cardCount: number
  /** Contents up to the last byte that is not 0. */
  readonly first: Uint8Array
  /** The same, card by card, each with what a store at its end reaches. */
  readonly firstCards: readonly Uint8Array[]
  readonly bytes: Uint8Array
  /** Its cards. */
  marks: Uint8Array
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
    this.#memories = layout.memories.map(({ cards, headroomPages }, index) => {
      const memory = exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      if (hasHeadroom) addPages(memory, headroomPages)
      const bytes = new Uint8Array(memory.buffer)
      const cardCount = bytes.length >> CARD_SHIFT
      const marks = marksOf(exchange.cards, cards, cardCount)
      const first = firstBytes(bytes)
      return { memory, cards, cardCount, first, firstCards: toCards(first), bytes, marks }
    })
    this.#restore = exports[`${EXPORT_PREFIX}restore`] as () => void
    const save = exports[`${EXPORT_PREFIX}save`] as () => void
    save()
    for (const { marks } of this.#memories) marks.fill(0)
  }

  /** A memory has really grown: it is not made small again. */
  get hasGrown(): boolean {
    return this.#memories.some(isGrown)
  }

  /** @returns false when the instance has changed in a way that is not undone: it must not be used again */
  restore(): boolean {
    if (this.#exchange.isDirty) return false
    const all = this.#exchange.cards
    for (const kept of this.#memories) {
      if (isGrown(kept)) return false
      // The exchange may have grown: its cards lie in another buffer then.
      if (kept.marks.buffer !== all.buffer) kept.marks = marksOf(all, kept.cards, kept.cardCount)
      putBack(kept)
    }
    this.#restore()
    return this.#exchange.clear()
  }
}

/** A memory that really grew has another buffer, and leaves views of the former one empty, which is quicker to see. */
function isGrown({ bytes, memory }: KeptMemory): boolean {
  return bytes.length === 0 && bytes.buffer !== memory.buffer
}

function putBack({ first, firstCards, bytes, marks }: KeptMemory): void {
  for (let card = marks.indexOf(1); card >= 0; card = marks.indexOf(1, card + 1)) {
    marks[card] = 0
    const start = card * CARD_BYTES
    const stop = Math.min(start + CARD_BYTES + OVERLAP_BYTES, bytes.length)
    if (card < firstCards.length) bytes.set(firstCards[card], start)
    if (stop > first.length) bytes.fill(0, Math.max(start, first.length), stop)
  }
}

function marksOf(all: Uint8Array, cards: number, cardCount: number): Uint8Array {
  return new Uint8Array(all.buffer, all.byteOffset + cards, cardCount)
}

function toCards(first: Uint8Array): Uint8Array[] {
  const cards: Uint8Array[] = []
  for (let start = 0; start < first.length; start += CARD_BYTES)
    cards.push(first.subarray(start, start + CARD_BYTES + OVERLAP_BYTES))
  return cards
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
