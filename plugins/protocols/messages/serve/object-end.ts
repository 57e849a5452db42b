/** Finds where a JSON object that comes in pieces ends; each character is looked at once. */

const QUOTE = 0x22
const BACKSLASH = 0x5c

export class ObjectEnd {
  #depth = 0
  #isString = false
  #isEscaped = false
  #hasClosed = false
  #hasMore = false

  /** What came so far ends with the brace that closes what the first one opened, but for white space. */
  get isReached(): boolean {
    return this.#hasClosed && !this.#hasMore
  }

  push(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.#hasClosed) this.#hasMore ||= piece[at].trim() !== ''
      else if (this.#isEscaped) this.#isEscaped = false
      else if (this.#isString) {
        if (code === QUOTE) this.#isString = false
        else if (code === BACKSLASH) this.#isEscaped = true
      } else if (code === QUOTE) this.#isString = true
      else if (piece[at] === '{') this.#depth++
      else if (piece[at] === '}' && --this.#depth <= 0) this.#hasClosed = true
    }
  }
}
