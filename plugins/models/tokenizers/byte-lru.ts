/** A least-recently-used cache of the ids of texts, limited by bytes. @hot */

/** Overhead of one entry: map slot, string and array headers, in bytes. */
const ENTRY_BYTES = 200

interface Entry {
  readonly text: string
  readonly ids: Uint32Array
}

export class ByteLru {
  readonly #maxBytes: number
  readonly #maxEntries: number
  /** Least recently used first. The keys are copies, which retain no text of the caller. */
  readonly #entries = new Map<string, Entry>()
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
    const entry = this.#entries.get(text)
    if (entry === undefined) return undefined
    this.#entries.delete(entry.text)
    this.#entries.set(entry.text, entry)
    return entry.ids
  }

  /** @param text may be part of a larger text, which is not kept alive */
  set(text: string, ids: Uint32Array): void {
    const bytes = entryBytes(text, ids)
    if (bytes > this.#maxBytes || this.#entries.has(text)) return
    const own = ownCopy(text)
    this.#entries.set(own, { text: own, ids })
    this.#bytes += bytes
    for (const oldest of this.#entries.values()) {
      if (this.#bytes <= this.#maxBytes && this.#entries.size <= this.#maxEntries) return
      this.#entries.delete(oldest.text)
      this.#bytes -= entryBytes(oldest.text, oldest.ids)
    }
  }
}

/** Two bytes per character: whether the engine stores one or two is not known. */
function entryBytes(text: string, ids: Uint32Array): number {
  return 2 * text.length + ids.byteLength + ENTRY_BYTES
}

/** A part of a string keeps the whole in memory. */
function ownCopy(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
