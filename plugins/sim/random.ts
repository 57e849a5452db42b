/** Seeded chance: the same seed gives the same numbers on every machine. */

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** FNV-1a over UTF-16 units. @returns an unsigned 32-bit number @source the published FNV-1a constants */
export function hashText(text: string, start: number = FNV_OFFSET): number {
  let hash = start >>> 0
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME)
  }
  return hash >>> 0
}

/** One seed from several parts; the border between parts counts, so ('ab', 'c') and ('a', 'bc') differ. */
export function seedOf(...parts: readonly (string | number)[]): number {
  let hash = FNV_OFFSET
  for (const part of parts) hash = Math.imul(hashText(String(part), hash) ^ 0x1f, FNV_PRIME)
  return hash >>> 0
}

/** A small generator of 32-bit quality (a Weyl sequence with a mixing step); not for secrets. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** @returns a number from 0 (included) to 1 (excluded) */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296
  }

  /** @returns a whole number from 0 (included) to `limit` (excluded) */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** Lower-case hexadecimal digits, for ids. */
  hex(length: number): string {
    let digits = ''
    while (digits.length < length) digits += this.below(16).toString(16)
    return digits
  }
}
