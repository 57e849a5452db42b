/** Finds the closing bracket of Python source, ignoring brackets inside strings. Reads each character once. @hot */

const OUTSIDE = 0
/** After one quote: the beginning of a string, which may be empty or in three quotes. */
const OPENED = 1
/** After two quotes: an empty string, or the beginning of one in three quotes. */
const TWICE = 2
const STRING = 3
const TRIPLE = 4

export class BracketScan {
  #depth = 0
  #inside = OUTSIDE
  #quote = 0
  #isEscaped = false
  /** Quotes in a row at the end of a string in three quotes. */
  #closing = 0

  /** @param depth brackets that are open already */
  reset(depth: number): void {
    this.#depth = depth
    this.#inside = OUTSIDE
    this.#isEscaped = false
  }

  /** @returns the place behind the closing bracket; -1 when it is not in this part */
  feed(text: string, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const code = text.charCodeAt(at)
      if (this.#inside !== OUTSIDE && this.#readString(code)) continue
      if (code === 0x22 || code === 0x27) {
        this.#quote = code
        this.#inside = OPENED
      } else if (code === 0x28 || code === 0x5b || code === 0x7b) this.#depth++
      else if ((code === 0x29 || code === 0x5d || code === 0x7d) && --this.#depth === 0) return at + 1
    }
    return -1
  }

  /** @returns false when the character comes after the string */
  #readString(code: number): boolean {
    if (this.#isEscaped) {
      this.#isEscaped = false
      return true
    }
    const isQuote = code === this.#quote
    if (this.#inside === TWICE && !isQuote) {
      this.#inside = OUTSIDE
      return false
    }
    if (code === 0x5c) {
      this.#isEscaped = true
      this.#closing = 0
      if (this.#inside === OPENED) this.#inside = STRING
      return true
    }
    if (!isQuote) {
      this.#closing = 0
      if (this.#inside === OPENED) this.#inside = STRING
      return true
    }
    if (this.#inside === OPENED) this.#inside = TWICE
    else if (this.#inside === TWICE) {
      this.#inside = TRIPLE
      this.#closing = 0
    } else if (this.#inside === STRING || ++this.#closing === 3) this.#inside = OUTSIDE
    return true
  }
}
