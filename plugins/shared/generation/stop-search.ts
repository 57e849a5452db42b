/**
 * @hot
 * Looks for stop strings in text that comes in pieces, and holds back only what may be the beginning of one.
 */

/** A stop string with its failure function, matched one UTF-16 unit at a time. */
class StopPattern {
  readonly text: string
  readonly #fallback: Int32Array
  /** How much of the pattern the text ends with. */
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
  /** The stop that ended the text; null while none has. */
  matched: string | null = null

  /** @param stops empty ones are ignored; of two that end at one place, the one that began earlier counts */
  constructor(stops: readonly string[], includesStop: boolean) {
    const wanted = Array.from(new Set(stops)).filter((stop) => stop !== '')
    this.#patterns = wanted.sort((a, b) => b.length - a.length).map((stop) => new StopPattern(stop))
    this.#includesStop = includesStop
  }

  /** The text that no stop can take back any more; empty once a stop has been found. */
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

  /** What was held back, when the text ended without a stop. Text behind it begins anew. */
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
