/**
 * How an instance was when it was made, and how it becomes so again: what the last call wrote is found by its cards and
 * put back, whatever the module did. @hot
 */

import { CARD_SHIFT } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from '../rewrite/rewrite-module.ts'
import type { GuestExchange } from './guest-exchange.ts'

const CARD_BYTES = 1 << CARD_SHIFT
/** A store may reach that far beyond its card. */
const OVERLAP_BYTES = 16
const EMPTY_CARD = new Uint8Array(CARD_BYTES + OVERLAP_BYTES)
/** Nothing follows it. */
const LAST_EMPTY_CARD = EMPTY_CARD.subarray(0, CARD_BYTES)
/** 16 pages have so many. */
const MAX_WORDS = 64

interface KeptMemory {
  readonly memory: WebAssembly.Memory
  /** Offset of its cards in the exchange memory. */
  readonly cardsAt: number
  readonly cardCount: number
  /** First contents, card by card, each with what a store at its end reaches; those of nothing but zeros are one. */
  readonly firstCards: readonly Uint8Array[]
  readonly bytes: Uint8Array
  marks: Marks
}

/** Which cards were written to. */
interface Marks {
  /** The exchange memory that they lie in: another one once it has grown. */
  readonly all: Uint8Array
  readonly cards: Uint8Array
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
    this.#memories = layout.memories.map(({ cards: cardsAt, headroomPages }, index) => {
      const memory = exports[`${EXPORT_PREFIX}memory:${index}`] as WebAssembly.Memory
      if (hasHeadroom) addPages(memory, headroomPages)
      const bytes = new Uint8Array(memory.buffer)
      const cardCount = bytes.length >> CARD_SHIFT
      const all = exchange.cards
      const firstCards = toCards(bytes, cardCount)
      return { memory, cardsAt, cardCount, firstCards, bytes, marks: marksOf(all, cardsAt, cardCount) }
    })
    this.#restore = exports[`${EXPORT_PREFIX}restore`] as () => void
    const save = exports[`${EXPORT_PREFIX}save`] as () => void
    save()
    for (const { marks } of this.#memories) marks.cards.fill(0)
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
      if (kept.marks.all !== all) kept.marks = marksOf(all, kept.cardsAt, kept.cardCount)
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

/** Most memories are small, and a few words are looked at sooner than the library's own search is called. */
function putBack(kept: KeptMemory): void {
  const { cards, words } = kept.marks
  if (words.length <= MAX_WORDS) {
    for (let word = 0; word < words.length; word++) {
      if (words[word] === 0) continue
      const card = word * 4
      for (let place = card; place < card + 4; place++) if (cards[place] !== 0) putBackCard(kept, place)
    }
  } else
    for (let card = cards.indexOf(1); card >= 0; card = cards.indexOf(1, card + 1)) putBackCard(kept, card)
}

function putBackCard({ firstCards, bytes, marks }: KeptMemory, card: number): void {
  marks.cards[card] = 0
  bytes.set(firstCards[card], card * CARD_BYTES)
}

function marksOf(all: Uint8Array, cardsAt: number, cardCount: number): Marks {
  const { buffer, byteOffset } = all
  return {
    all,
    cards: new Uint8Array(buffer, byteOffset + cardsAt, cardCount),
    words: new Uint32Array(buffer, byteOffset + cardsAt, cardCount / 4),
  }
}

function toCards(bytes: Uint8Array, cardCount: number): Uint8Array[] {
  const first = firstBytes(bytes)
  const cards: Uint8Array[] = []
  for (let card = 0; card < cardCount; card++) {
    const start = card * CARD_BYTES
    const length = Math.min(CARD_BYTES + OVERLAP_BYTES, bytes.length - start)
    if (start >= first.length) cards.push(length === EMPTY_CARD.length ? EMPTY_CARD : LAST_EMPTY_CARD)
    else {
      const content = new Uint8Array(length)
      content.set(first.subarray(start, start + length))
      cards.push(content)
    }
  }
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
