/** A least-recently-used cache of the ids of texts, limited by bytes. @hot */

/** Overhead of one entry: map slot, string and array headers, in bytes. */
const ENTRY_BYTES = 200

/** An entry of a ring in order of use, so that a use costs one look-up and retains no text of the caller. */
interface Entry {
  readonly text: string
  readonly ids: Uint32Array
  newer: Entry
  older: Entry
}

export class ByteLru {
  readonly #maxBytes: number
  readonly #maxEntries: number
  readonly #entries = new Map<string, Entry>()
  /** Stands between the newest and the oldest. */
  readonly #ends: Entry
  #bytes = 0

  constructor(maxBytes: number, maxEntries = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes
    this.#maxEntries = maxEntries
    const ends = { text: '', ids: new Uint32Array() } as Entry
    ends.newer = ends
    ends.older = ends
    this.#ends = ends
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
    takeOut(entry)
    this.#putNewest(entry)
    return entry.ids
  }

  /** @param text may be part of a larger text, which is not kept alive */
  set(text: string, ids: Uint32Array): void {
    const bytes = entryBytes(text, ids)
    if (bytes > this.#maxBytes || this.#entries.has(text)) return
    const own = ownCopy(text)
    const entry: Entry = { text: own, ids, newer: this.#ends, older: this.#ends }
    this.#entries.set(own, entry)
    this.#putNewest(entry)
    this.#bytes += bytes
    while (this.#bytes > this.#maxBytes || this.#entries.size > this.#maxEntries) {
      const oldest = this.#ends.newer
      takeOut(oldest)
      this.#entries.delete(oldest.text)
      this.#bytes -= entryBytes(oldest.text, oldest.ids)
    }
  }

  #putNewest(entry: Entry): void {
    const ends = this.#ends
    entry.newer = ends
    entry.older = ends.older
    ends.older.newer = entry
    ends.older = entry
  }
}

function takeOut({ newer, older }: Entry): void {
  newer.older = older
  older.newer = newer
}

/** Two bytes per character: whether the engine stores one or two is not known. */
function entryBytes(text: string, ids: Uint32Array): number {
  return 2 * text.length + ids.byteLength + ENTRY_BYTES
}

/** A part of a string keeps the whole in memory. */
function ownCopy(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
