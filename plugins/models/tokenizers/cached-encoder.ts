/** Encodes with caches for whole prompts and for the text between special tokens. */
import { type MarkerToken, markersOf, Segmenter } from './segments.ts'

export interface CacheSettings {
  readonly promptCache: { readonly enabled: boolean; readonly maxEntries: number; readonly maxBytes: number }
  readonly segmentCache: { readonly enabled: boolean; readonly maxBytes: number }
}

/** Counts since the last report. */
export interface CacheCounts {
  promptHits: number
  promptMisses: number
  segmentHits: number
  segmentMisses: number
}

export type Encode = (text: string) => Uint32Array | Promise<Uint32Array>

const MAX_TRIED_MARKERS = 6
/** Chats for the check: turns, empty ones, letters beyond ASCII, spaces at borders. */
const CHECKED = [
  'Hello',
  ' world',
  '',
  '\n',
  '  two  spaces ',
  'Größe 漢字 😀',
  '\n\nend.',
  'tab\tx',
  ' ',
  '1234567',
]

export class CachedEncoder {
  readonly counts: CacheCounts = { promptHits: 0, promptMisses: 0, segmentHits: 0, segmentMisses: 0 }
  readonly #encode: Encode
  readonly #segmenter: Segmenter | null
  readonly #prompts: ByteLru | null
  readonly #segments: ByteLru | null
  /** Segments that are being encoded, so that two of one batch cost one. */
  readonly #underWay = new Map<string, Promise<Uint32Array>>()

  /**
   * @param encode adds no special tokens
   * @param segmenter of `findMarkers`; null where segments must not be cached
   */
  constructor(encode: Encode, segmenter: Segmenter | null, { promptCache, segmentCache }: CacheSettings) {
    this.#encode = encode
    this.#segmenter = segmenter
    this.#prompts = promptCache.enabled ? new ByteLru(promptCache.maxBytes, promptCache.maxEntries) : null
    this.#segments = segmenter === null ? null : new ByteLru(segmentCache.maxBytes)
  }

  get usesSegments(): boolean {
    return this.#segments !== null
  }

  /** Memory of both caches, in bytes. */
  get bytes(): number {
    return (this.#prompts?.bytes ?? 0) + (this.#segments?.bytes ?? 0)
  }

  async encode(text: string): Promise<Uint32Array> {
    const known = this.#prompts?.get(text)
    if (known !== undefined) {
      this.counts.promptHits++
      return known
    }
    if (this.#prompts !== null) this.counts.promptMisses++
    const ids =
      this.#segments === null || this.#segmenter === null
        ? await this.#encode(text)
        : await this.#encodePieces(this.#segmenter.cut(text), this.#segments)
    this.#prompts?.set(text, ids)
    return ids
  }

  #encodePieces(pieces: readonly string[], segments: ByteLru): Uint32Array | Promise<Uint32Array> {
    const parts: (Uint32Array | Promise<Uint32Array>)[] = []
    let isKnown = true
    for (const piece of pieces) {
      const part = this.#piece(piece, segments)
      if (!(part instanceof Uint32Array)) isKnown = false
      parts.push(part)
    }
    return isKnown ? joined(parts as Uint32Array[]) : Promise.all(parts).then(joined)
  }

  #piece(piece: string, segments: ByteLru): Uint32Array | Promise<Uint32Array> {
    const known = segments.get(piece)
    if (known !== undefined) {
      this.counts.segmentHits++
      return known
    }
    const underWay = this.#underWay.get(piece)
    if (underWay !== undefined) return underWay
    this.counts.segmentMisses++
    const given = this.#encode(piece)
    if (given instanceof Uint32Array) {
      segments.set(piece, given)
      return given
    }
    const work = given
      .then((ids) => {
        segments.set(piece, ids)
        return ids
      })
      .finally(() => this.#underWay.delete(piece))
    this.#underWay.set(piece, work)
    return work
  }
}

/** The tokens behind which prompts may be cut; null if a trial shows that the tokenizer does not allow it. */
export async function findMarkers(
  encode: Encode,
  added: readonly MarkerToken[],
  isPlain: boolean,
): Promise<readonly string[] | null> {
  const markers = [...markersOf(added, isPlain)]
  if (markers.length === 0) return null
  const segmenter = new Segmenter(markers)
  for (const marker of markers.slice(0, MAX_TRIED_MARKERS)) {
    for (const [place, before] of CHECKED.entries()) {
      const after = CHECKED[(place + 3) % CHECKED.length]
      const text = `${before}${marker}${before}${marker}${after}`
      const pieces = await Promise.all(segmenter.cut(text).map((piece) => encode(piece)))
      if (!isSame(joined(pieces), await encode(text))) return null
    }
  }
  return markers
}

export function joined(parts: readonly Uint32Array[]): Uint32Array {
  if (parts.length === 1) return parts[0]
  let length = 0
  for (const part of parts) length += part.length
  const all = new Uint32Array(length)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

function isSame(a: Uint32Array, b: Uint32Array): boolean {
  return a.length === b.length && a.every((id, place) => id === b[place])
}

/** Overhead of one entry: map slot, string and array headers, in bytes. */
const ENTRY_BYTES = 200

interface Entry {
  readonly text: string
  readonly ids: Uint32Array
}

/** A least-recently-used cache of the ids of texts, limited by bytes. @hot */
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
