/**
 * Finds the next of a set of words in a text: the leftmost, and of those that begin there the longest.
 */
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

  get size(): number {
    return this.#words.size
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
