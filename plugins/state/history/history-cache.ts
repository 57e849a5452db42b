/** LRU cache of histories, bounded by the memory they take, so that the next turn of a chain does not read the whole chain. */
import type { HistoryItem } from '#kernel'
import type { ChainPosition, Segment } from './collections.ts'

/** Maximum age of an entry; deletion marks are kept longer than this. */
export const CACHED_MS = 3_600_000
/** Memory of an item and of an entry apart from the text, with strings, objects and arrays of usual items. */
const ITEM_BYTES = 400
const ENTRY_BYTES = 600

interface Entry {
  readonly items: readonly HistoryItem[]
  /** Length of its text. */
  readonly bytes: number
  /** Deletion marks at the time of reading; the entry is stale if one has changed. */
  readonly marks: readonly (string | undefined)[]
  readonly readAtMs: number
}

/** History that ends with a response. */
export interface CachedChain extends Entry {
  readonly segments: readonly Segment[]
  readonly place: ChainPosition
}

export interface CachedConversation extends Entry {
  /** Position of the first item that is not cached. */
  readonly next: number
}

type CachedHistory = CachedChain | CachedConversation

export class HistoryCache {
  readonly #maxBytes: number
  /** Keyed by id alone, because tenants rarely share ids; an entry of another tenant is a miss. */
  readonly #kept = new Map<string, { readonly tenant: string; readonly history: CachedHistory }>()
  #bytes = 0

  /** @param maxBytes memory of all entries */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  chain(tenant: string, id: string): CachedChain | undefined {
    const history = this.#get(tenant, id)
    return history !== undefined && 'place' in history ? history : undefined
  }

  conversation(tenant: string, id: string): CachedConversation | undefined {
    const history = this.#get(tenant, id)
    return history !== undefined && 'next' in history ? history : undefined
  }

  set(tenant: string, id: string, history: CachedHistory): void {
    this.#drop(id)
    const bytes = heldBytes(history)
    if (bytes > this.#maxBytes / 4) return
    this.#kept.set(id, { tenant, history })
    this.#bytes += bytes
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) break
      this.#drop(oldest)
    }
  }

  delete(tenant: string, id: string): void {
    if (this.#kept.get(id)?.tenant === tenant) this.#drop(id)
  }

  #get(tenant: string, id: string): CachedHistory | undefined {
    const kept = this.#kept.get(id)
    if (kept === undefined || kept.tenant !== tenant) return undefined
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    return kept.history
  }

  #drop(id: string): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    this.#bytes -= heldBytes(kept.history)
  }
}

function heldBytes({ items, bytes }: CachedHistory): number {
  return ENTRY_BYTES + items.length * ITEM_BYTES + bytes
}

const DEPTH_LIMIT = 64
const PUNCTUATION = 4
const SCALAR = 5

/** Estimates the JSON length of a value without serializing it. */
export function approximateBytes(value: unknown, depth = 0): number {
  if (typeof value === 'string') return value.length + PUNCTUATION
  if (typeof value !== 'object' || value === null || depth > DEPTH_LIMIT) return SCALAR
  let bytes = PUNCTUATION
  if (Array.isArray(value)) {
    for (const item of value) bytes += approximateBytes(item, depth + 1)
    return bytes
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + PUNCTUATION + approximateBytes((value as Record<string, unknown>)[key], depth + 1)
  }
  return bytes
}
