/** Finds special tokens in a text, and cuts prompts behind them: nothing that is merged reaches over such a border. */
import type { AddedToken } from './token-table.ts'

/** Added tokens as `tokenizer.json` describes them. */
export interface MarkerToken extends AddedToken {
  readonly lstrip?: boolean
  readonly rstrip?: boolean
  readonly single_word?: boolean
  readonly normalized?: boolean
}

/** Finds the next of a set of words in a text: the leftmost, and of those that begin there the longest. */
export class MarkerIndex {
  readonly #words: ReadonlySet<string>
  /** Of words, longest first, by the code unit that they begin with. */
  readonly #lengths = new Map<number, readonly number[]>()
  /** The first code units, as a pattern: the engine searches for it faster than a loop does. */
  readonly #beginning: RegExp | null
  /** Of the last word found. */
  length = 0

  constructor(words: Iterable<string>) {
    this.#words = new Set(words)
    const lengths = new Map<number, Set<number>>()
    for (const word of this.#words) {
      const unit = word.charCodeAt(0)
      const known = lengths.get(unit)
      if (known === undefined) lengths.set(unit, new Set([word.length]))
      else known.add(word.length)
    }
    for (const [unit, set] of lengths)
      this.#lengths.set(
        unit,
        [...set].sort((a, b) => b - a),
      )
    const units = [...lengths.keys()].map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    this.#beginning = units.length === 0 ? null : new RegExp(`[${units.join('')}]`, 'g')
  }

  /** Position of the next word, whose length is `length` then; -1 if there is none. */
  find(text: string, from: number): number {
    const beginning = this.#beginning
    if (beginning === null) return -1
    beginning.lastIndex = from
    while (beginning.test(text)) {
      const at = beginning.lastIndex - 1
      for (const length of this.#lengths.get(text.charCodeAt(at)) ?? []) {
        if (!this.#words.has(text.slice(at, at + length)) || at + length > text.length) continue
        this.length = length
        return at
      }
    }
    return -1
  }
}

/**
 * Tokens behind which a text may be cut.
 * @param isPlain nothing normalizes the text, so that tokens are found as they are written
 */
export function markersOf(added: readonly MarkerToken[], isPlain: boolean): ReadonlySet<string> {
  return withoutOverlaps(
    added.filter((token) => isMarker(token, isPlain)).map(({ content }) => content),
    added.map(({ content }) => content),
  )
}

export class Segmenter {
  readonly #index: MarkerIndex

  /** @param markers of `markersOf` */
  constructor(markers: Iterable<string>) {
    this.#index = new MarkerIndex(markers)
  }

  /** Pieces that make up the text; each but the last ends with a special token. */
  cut(text: string): string[] {
    const index = this.#index
    const pieces: string[] = []
    let start = 0
    for (let at = index.find(text, 0); at >= 0; at = index.find(text, start)) {
      const end = at + index.length
      pieces.push(text.slice(start, end))
      start = end
    }
    if (start < text.length || pieces.length === 0) pieces.push(text.slice(start))
    return pieces
  }
}

/** Splits the text into parts without a special token: each token is cut behind its first character. */
export function withoutMarkers(text: string, added: readonly MarkerToken[]): string[] {
  const index = new MarkerIndex(added.flatMap(({ content }) => (content === '' ? [] : [content])))
  const parts: string[] = []
  let start = 0
  for (let at = index.find(text, 0); at >= 0; at = index.find(text, start)) {
    const end = at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
    parts.push(text.slice(start, end))
    start = end
  }
  if (start < text.length) parts.push(text.slice(start))
  return parts
}

function isMarker(token: MarkerToken, isPlain: boolean): boolean {
  const { content } = token
  if (token.lstrip === true || token.rstrip === true || token.single_word === true) return false
  if (token.normalized === true && !isPlain) return false
  // Tokens not marked as special count only if users do not write them by accident.
  return content !== '' && (token.special || (content.length > 3 && /^[<[].*[>\]]$/s.test(content)))
}

/** Markers of which no occurrence can hide or cut that of another token. */
function withoutOverlaps(markers: readonly string[], contents: readonly string[]): ReadonlySet<string> {
  const beginnings = new Set<string>()
  const endings = new Set<string>()
  for (const content of contents) {
    for (let at = 1; at < content.length; at++) {
      beginnings.add(content.slice(0, at))
      endings.add(content.slice(at))
    }
  }
  const kept = new Set(
    markers.filter((marker) => {
      for (let at = 1; at < marker.length; at++)
        if (beginnings.has(marker.slice(at)) || endings.has(marker.slice(0, at))) return false
      return true
    }),
  )
  const lengths = new Set(markers.map(({ length }) => length))
  for (const content of contents)
    for (const length of lengths)
      for (let at = 0; length < content.length && at + length <= content.length; at++)
        kept.delete(content.slice(at, at + length))
  return kept
}
