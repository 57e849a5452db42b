/** LRU cache of histories, bounded by text size, so that the next turn of a chain does not read the whole chain. */
import type { HistoryItem } from '#kernel'

/** Maximum age of an entry; deletion marks are kept longer than this. */
export const CACHED_MS = 3_600_000

export interface CachedHistory {
  readonly items: readonly HistoryItem[]
  readonly bytes: number
  /** Deletion marks at the time of reading; the entry is stale if one has changed. */
  readonly marks: readonly (string | undefined)[]
}

/** Keyed by id alone, because tenants rarely share ids; an entry of another tenant is a miss. */
interface Kept<Entry> {
  readonly tenant: string
  readonly entry: Entry
}

export class HistoryCache<Entry extends { readonly bytes: number }> {
  readonly #maxBytes: number
  readonly #kept = new Map<string, Kept<Entry>>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(tenant: string, id: string): Entry | undefined {
    const kept = this.#kept.get(id)
    if (kept === undefined || kept.tenant !== tenant) return undefined
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    return kept.entry
  }

  set(tenant: string, id: string, entry: Entry): void {
    this.#drop(id)
    if (entry.bytes > this.#maxBytes / 4) return
    this.#kept.set(id, { tenant, entry })
    this.#bytes += entry.bytes
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) break
      this.#drop(oldest)
    }
  }

  delete(tenant: string, id: string): void {
    if (this.#kept.get(id)?.tenant === tenant) this.#drop(id)
  }

  #drop(id: string): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    this.#bytes -= kept.entry.bytes
  }
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
