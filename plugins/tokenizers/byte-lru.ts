/** A map from text to ids that keeps within a number of bytes: what was used longest ago goes first. */

/** Of one entry beyond its text and ids: map slot, string and array headers. Bytes. */
const ENTRY_BYTES = 200

export class ByteLru {
  readonly #maxBytes: number
  readonly #maxEntries: number
  readonly #entries = new Map<string, Uint32Array>()
  #bytes = 0

  constructor(maxBytes: number, maxEntries = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes
    this.#maxEntries = maxEntries
  }

  /** Of all entries, as this class counts them. */
  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#entries.size
  }

  get(text: string): Uint32Array | undefined {
    const ids = this.#entries.get(text)
    if (ids === undefined) return undefined
    this.#entries.delete(text)
    this.#entries.set(text, ids)
    return ids
  }

  /** @param text may be part of a larger text, which is not kept alive */
  set(text: string, ids: Uint32Array): void {
    const bytes = entryBytes(text, ids)
    if (bytes > this.#maxBytes || this.#entries.has(text)) return
    this.#entries.set(ownCopy(text), ids)
    this.#bytes += bytes
    for (const [oldest, old] of this.#entries) {
      if (this.#bytes <= this.#maxBytes && this.#entries.size <= this.#maxEntries) break
      this.#entries.delete(oldest)
      this.#bytes -= entryBytes(oldest, old)
    }
  }
}

/** Two bytes a letter: whether a text needs one or two is not told. */
function entryBytes(text: string, ids: Uint32Array): number {
  return 2 * text.length + ids.byteLength + ENTRY_BYTES
}

/** A part of a string keeps the whole in memory. */
function ownCopy(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
