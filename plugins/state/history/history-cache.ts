/** Histories that were used last, so that the next turn of a chain reads its own parent only. Bounded by their text. */
import type { HistoryItem } from '#kernel'

/** What was read longer ago is read again: marks of deletions outlive everything that is in memory. */
export const CACHED_MS = 3_600_000

export interface CachedHistory {
  readonly items: readonly HistoryItem[]
  readonly bytes: number
  /** What was found deleted inside when it was read; another value since means: read again. */
  readonly marks: readonly (string | undefined)[]
}

/** Ids are hardly ever shared by tenants: they alone are the keys, and an entry that is another tenant's counts as none. */
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
