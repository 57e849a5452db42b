/** Finds the first of several markers in a text, and an incomplete one at its end. @hot */

/**
 * A fixed set of markers, none of which is a prefix of another. Shared by all streams: between searches it keeps only the
 * result of the last one.
 */
export class MarkerSearch {
  /** Which marker the last search found; -1 for none. */
  found = -1
  readonly markers: readonly string[]
  readonly #firsts: readonly string[]
  readonly #nextAt: Int32Array
  readonly #onlyFirst: string | null

  constructor(markers: readonly string[]) {
    this.markers = markers
    const firsts: string[] = []
    for (const marker of markers) if (!firsts.includes(marker[0])) firsts.push(marker[0])
    this.#firsts = firsts
    this.#nextAt = new Int32Array(firsts.length)
    this.#onlyFirst = firsts.length === 1 ? firsts[0] : null
  }

  /**
   * @returns the place of the first marker, whose index is `found`. Without one, `found` is -1 and the result is the place of
   * an incomplete marker at the end of the text, or else the length of the text.
   */
  find(text: string, from: number): number {
    const length = text.length
    let at = this.#next(text, from)
    while (at < length) {
      for (let i = 0; i < this.markers.length; i++) {
        const marker = this.markers[i]
        if (text.startsWith(marker, at)) {
          this.found = i
          return at
        }
        if (length - at < marker.length && isPrefixAt(marker, text, at)) {
          this.found = -1
          return at
        }
      }
      at = this.#next(text, at + 1)
    }
    this.found = -1
    return length
  }

  /** The next place at which any marker could begin. */
  #next(text: string, from: number): number {
    if (this.#onlyFirst !== null) {
      const at = text.indexOf(this.#onlyFirst, from)
      return at < 0 ? text.length : at
    }
    if (text !== searchedText || this !== searchedBy || from < searchedFrom) {
      searchedText = text
      searchedBy = this
      this.#nextAt.fill(-1)
    }
    searchedFrom = from
    // Places of each first character are cached, so that no part of the text is searched twice for one.
    // bench: parsers
    const nextAt = this.#nextAt
    let least = text.length
    for (let i = 0; i < this.#firsts.length; i++) {
      if (nextAt[i] < from) {
        const at = text.indexOf(this.#firsts[i], from)
        nextAt[i] = at < 0 ? text.length : at
      }
      if (nextAt[i] < least) least = nextAt[i]
    }
    return least
  }
}

/** The text of the cached places; readers release it at the end of a chunk. */
let searchedText = ''
let searchedFrom = 0
let searchedBy: MarkerSearch | null = null

/** Releases the text that was searched last. */
export function forgetSearchedText(): void {
  searchedText = ''
  searchedBy = null
}

/** Whether the rest of the text is the beginning of the marker. */
function isPrefixAt(marker: string, text: string, at: number): boolean {
  const count = text.length - at
  for (let i = 0; i < count; i++) {
    if (text.charCodeAt(at + i) !== marker.charCodeAt(i)) return false
  }
  return true
}
