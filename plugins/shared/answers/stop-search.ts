/**
 * @hot
 * Finds stop strings in streamed text, and holds back only text that may be the beginning of one.
 */

/** A stop string with its failure function (Knuth-Morris-Pratt), matched by UTF-16 unit. */
class StopPattern {
  readonly text: string
  readonly #fallback: Int32Array
  /** Length of the prefix of the pattern that the text ends with. */
  matched = 0

  constructor(text: string) {
    this.text = text
    this.#fallback = new Int32Array(text.length)
    for (let i = 1, length = 0; i < text.length; i++) {
      while (length > 0 && text.charCodeAt(i) !== text.charCodeAt(length)) length = this.#fallback[length - 1]
      if (text.charCodeAt(i) === text.charCodeAt(length)) length++
      this.#fallback[i] = length
    }
  }

  /** @returns true when the pattern is complete */
  feed(unit: number): boolean {
    const { text } = this
    while (this.matched > 0 && text.charCodeAt(this.matched) !== unit)
      this.matched = this.#fallback[this.matched - 1]
    if (text.charCodeAt(this.matched) === unit) this.matched++
    return this.matched === text.length
  }
}

export class StopSearch {
  readonly #patterns: readonly StopPattern[]
  readonly #includesStop: boolean
  #held = ''
  /** The stop string that was found, or null. */
  matched: string | null = null

  /** @param stops empty ones are ignored; of two that end at the same position, the longer one wins */
  constructor(stops: readonly string[], includesStop: boolean) {
    const patterns = Array.from(new Set(stops)).filter((stop) => stop !== '')
    this.#patterns = patterns.sort((a, b) => b.length - a.length).map((stop) => new StopPattern(stop))
    this.#includesStop = includesStop
  }

  /** @returns the text that cannot belong to a stop string; empty after a stop was found */
  push(text: string): string {
    if (this.matched !== null) return ''
    const all = this.#held + text
    for (let at = this.#held.length; at < all.length; at++) {
      const unit = all.charCodeAt(at)
      let found: StopPattern | null = null
      for (const pattern of this.#patterns) if (pattern.feed(unit) && found === null) found = pattern
      if (found !== null) return this.#stop(found.text, all, at + 1)
    }
    let held = 0
    for (const { matched } of this.#patterns) held = Math.max(held, matched)
    this.#held = all.slice(all.length - held)
    return all.slice(0, all.length - held)
  }

  /** Ends the text. @returns the text that was held back */
  end(): string {
    const held = this.#held
    this.#held = ''
    for (const pattern of this.#patterns) pattern.matched = 0
    return held
  }

  #stop(stop: string, all: string, end: number): string {
    this.matched = stop
    this.#held = ''
    return all.slice(0, this.#includesStop ? end : end - stop.length)
  }
}
