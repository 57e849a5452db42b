/**
 * Loads the history that ends with a response. The turns of a chain are adjacent in the store, so a history is one range
 * for its chain and one for each chain it branched from. Recently used histories are cached.
 */
import type { HistoryItem, HistoryProblem, LoadedHistory } from '#kernel'
import { pagesOf } from '#shared'
import {
  type ChainPosition,
  type HistoryParts,
  isId,
  isRunning,
  itemsOf,
  positionId,
  type Segment,
  turnId,
} from './collections.ts'
import { approximateBytes, CACHED_MS, type CachedChain, type HistoryCache } from './history-cache.ts'

export class ChainReader {
  readonly #parts: HistoryParts
  readonly #cache: HistoryCache

  constructor(parts: HistoryParts, cache: HistoryCache) {
    this.#parts = parts
    this.#cache = cache
  }

  async load(tenant: string, responseId: string): Promise<LoadedHistory | HistoryProblem> {
    // Deleting a response marks its chain, so an entry without a new mark is current.
    const cached = await this.#cached(tenant, responseId)
    if (cached !== undefined) return this.#checked(cached)
    if (!isId(responseId)) return { problem: 'not_found' }
    const { responses, marks } = this.#parts
    const readAtMs = performance.now()
    // A chain has the id of its first response: the mark that the second turn needs is read at the same time.
    const [head, mark] = await Promise.all([responses.get(tenant, responseId), marks.get(tenant, responseId)])
    if (head === undefined || head.status === 'deleted') return { problem: 'not_found' }
    if (isRunning(head)) return { problem: 'in_progress' }
    const { place, previousResponseId } = head
    if (place === null) return { problem: 'unusable' }
    if (this.#isTooLong(place.depth, place.bytes)) return { problem: 'too_long' }
    return this.#checked(
      (await this.#fromParent(tenant, responseId, previousResponseId, place)) ??
        (await this.#read(tenant, responseId, place, { mark, readAtMs })),
    )
  }

  /** Chain position of a cached response. */
  placeOf(tenant: string, id: string): ChainPosition | undefined {
    return this.#cache.chain(tenant, id)?.place
  }

  /**
   * Caches the history of a written turn if the history of its parent is cached. The first turn of a chain is cached when it
   * is continued: most responses never are, and objects that outlive their request are the most expensive garbage.
   */
  onWritten(
    tenant: string,
    id: string,
    parentId: string | null,
    place: ChainPosition,
    items: readonly HistoryItem[],
  ): void {
    const parent = parentId === null ? undefined : this.#cache.chain(tenant, parentId)
    if (parent !== undefined && parentId !== null && place.turn > 0)
      this.#extend(tenant, id, parentId, parent, place, items)
  }

  async #cached(tenant: string, id: string): Promise<CachedChain | undefined> {
    const cached = this.#cache.chain(tenant, id)
    if (cached === undefined || performance.now() - cached.readAtMs > CACHED_MS) return undefined
    const marks = await this.#marksOf(tenant, cached.segments)
    if (marks.every((mark, index) => mark === cached.marks[index])) return cached
    this.#cache.delete(tenant, id)
    return undefined
  }

  /** Reads only this turn if its parent is cached and in the same chain. */
  async #fromParent(
    tenant: string,
    id: string,
    parentId: string | null,
    place: ChainPosition,
  ): Promise<CachedChain | undefined> {
    if (parentId === null || place.turn === 0) return undefined
    const parent = await this.#cached(tenant, parentId)
    if (parent === undefined) return undefined
    const turn = await this.#parts.turns.get(tenant, turnId(place.chain, place.turn))
    return this.#extend(tenant, id, parentId, parent, place, itemsOf(turn))
  }

  #extend(
    tenant: string,
    id: string,
    parentId: string,
    parent: CachedChain,
    place: ChainPosition,
    own: readonly HistoryItem[],
  ): CachedChain {
    const segments = [...parent.segments.slice(0, -1), { chain: place.chain, to: place.turn }]
    // The position does not include the bytes of a conversation that the chain is based on.
    const bytes = parent.bytes + Math.max(0, place.bytes - parent.place.bytes)
    const { marks, readAtMs } = parent
    const cached = { items: [...parent.items, ...own], bytes, segments, marks, place, readAtMs }
    // Most chains continue at their end, so the parent's entry is rarely needed again.
    this.#cache.delete(tenant, parentId)
    this.#cache.set(tenant, id, cached)
    return cached
  }

  /** @param early the mark under the id of the response, and when its reading began */
  async #read(
    tenant: string,
    id: string,
    place: ChainPosition,
    { mark, readAtMs }: { readonly mark: string | undefined; readonly readAtMs: number },
  ): Promise<CachedChain> {
    const own = { chain: place.chain, to: place.turn }
    const base = place.isBased ? await this.#parts.chains.get(tenant, place.chain) : undefined
    const segments = [...(base?.segments ?? []), own]
    // Read before the turns, so that a later deletion changes a mark that was read.
    const isFirst = place.chain === id && segments.length === 1
    const marks = isFirst ? [mark] : await this.#marksOf(tenant, segments)
    const items: HistoryItem[] = []
    let { bytes } = place
    for (const segment of segments) {
      if ('chain' in segment) await this.#readTurns(tenant, segment, items)
      else bytes += await this.#readConversation(tenant, segment, items)
      if (items.length > this.#parts.config.maxHistoryItems || bytes > this.#parts.config.maxHistoryBytes)
        break
    }
    const cached = { items, bytes, segments, marks, place, readAtMs }
    this.#cache.set(tenant, id, cached)
    return cached
  }

  #checked({ items, bytes, place }: CachedChain): LoadedHistory | HistoryProblem {
    const isTooLong = this.#isTooLong(place.depth, bytes) || items.length > this.#parts.config.maxHistoryItems
    return isTooLong ? { problem: 'too_long' } : { items, bytes }
  }

  #isTooLong(depth: number, bytes: number): boolean {
    return depth > this.#parts.config.maxChainResponses || bytes > this.#parts.config.maxHistoryBytes
  }

  async #readTurns(
    tenant: string,
    { chain, to }: { chain: string; to: number },
    items: HistoryItem[],
  ): Promise<void> {
    const bounds = { from: turnId(chain, 0), to: turnId(chain, to + 1) }
    for await (const records of pagesOf(this.#parts.turns, tenant, bounds)) {
      for (const { value } of records) {
        for (const item of value.input) items.push(item)
        for (const item of value.output) items.push(item)
      }
      if (items.length > this.#parts.config.maxHistoryItems) return
    }
  }

  /** @returns approximate bytes added; exceeds the limit of a request by at most one page */
  async #readConversation(
    tenant: string,
    { conversation, to }: { conversation: string; to: number },
    items: HistoryItem[],
  ): Promise<number> {
    const bounds = { from: positionId(conversation, 0), to: positionId(conversation, to) }
    const { maxHistoryBytes, maxHistoryItems } = this.#parts.config
    let bytes = 0
    for await (const records of pagesOf(this.#parts.conversationItems, tenant, bounds)) {
      for (const { value } of records) {
        items.push(value.item)
        bytes += approximateBytes(value.item)
      }
      if (items.length > maxHistoryItems || bytes > maxHistoryBytes) break
    }
    return bytes
  }

  #marksOf(tenant: string, segments: readonly Segment[]): Promise<(string | undefined)[]> {
    const ids = segments.map((segment) => ('chain' in segment ? segment.chain : segment.conversation))
    return this.#parts.marks.getMany(tenant, ids)
  }
}
