/** Histories that were used last, so that the next turn of a chain reads its own parent only. Bounded by their text. */
import type { HistoryItem } from '#contracts'

export interface CachedHistory {
  readonly items: readonly HistoryItem[]
  readonly bytes: number
  /** What was found deleted inside when it was read; another value since means: read again. */
  readonly marks: readonly (string | undefined)[]
}

export class HistoryCache<Entry extends { readonly bytes: number }> {
  readonly #maxBytes: number
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(tenant: string, id: string): Entry | undefined {
    const key = keyOf(tenant, id)
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry
  }

  set(tenant: string, id: string, entry: Entry): void {
    this.delete(tenant, id)
    if (entry.bytes > this.#maxBytes / 4) return
    this.#entries.set(keyOf(tenant, id), entry)
    this.#bytes += entry.bytes
    for (const [oldest, { bytes }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break
      this.#entries.delete(oldest)
      this.#bytes -= bytes
    }
  }

  delete(tenant: string, id: string): void {
    const key = keyOf(tenant, id)
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }
}

function keyOf(tenant: string, id: string): string {
  return `${tenant}\u0000${id}`
}
