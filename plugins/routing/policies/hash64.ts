/**
 * Non-cryptographic 64-bit hash in two 32-bit lanes, for prefixes, keys and rings; equal on all threads and restarts of
 * one release. A collision only sends a request to a less suitable worker.
 * @hot
 */

/** Result of the last call, two 32-bit integers. Read them before the next call. */
export let hashLow = 0
export let hashHigh = 0

/** Constants of 32-bit xxHash and murmur3 (public domain). */
const P1 = 0x9e3779b1 | 0
const P2 = 0x85ebca77 | 0
const P3 = 0xc2b2ae3d | 0
const P4 = 0x27d4eb2f | 0

/** Finalizer of murmur3: every input bit affects every output bit. */
export function mix(word: number): number {
  let mixed = word ^ (word >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/** Hashes the UTF-16 code units of a text. */
export function hashText(text: string, seedLow = 0, seedHigh = 0): void {
  let low = seedLow ^ P3
  let high = seedHigh ^ P4
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    low = Math.imul(low ^ unit, P1)
    low ^= low >>> 15
    high = Math.imul(high + unit, P2)
    high ^= high >>> 13
  }
  finish(low, high, text.length)
}

/** The seed of a model for `hashText` and `hashPrefixes`, computed when the model changes. */
export class ModelSeed {
  low = 0
  high = 0
  private model: string | null = null
  private readonly salt: number

  constructor(salt = 0) {
    this.salt = salt
  }

  follow(model: string): void {
    if (model === this.model) return
    hashText(model, 0, this.salt)
    this.model = model
    this.low = hashLow
    this.high = hashHigh
  }
}

/**
 * Continues a hash over words without finalizing: pass the lanes of one call to the next. The lanes take alternate
 * words, which the processor computes in parallel. bench: micro/cache-aware
 */
export function hashWords(
  words: Int32Array | Uint32Array,
  from: number,
  to: number,
  low: number,
  high: number,
): void {
  let a = low
  let b = high
  let i = from
  for (; i + 1 < to; i += 2) {
    a = Math.imul(a ^ words[i], P1)
    a ^= a >>> 15
    b = Math.imul(b ^ words[i + 1], P2)
    b ^= b >>> 13
  }
  if (i < to) {
    a = Math.imul(a ^ words[i], P1)
    a ^= a >>> 15
  }
  hashLow = a
  hashHigh = b
}

/** Finalizes a hash over words: mixes the lanes with each other and with the length. */
export function finish(low: number, high: number, length: number): void {
  const a = mix(low ^ Math.imul(length, P4))
  const b = mix(high + Math.imul(a, P1))
  hashLow = mix(a ^ b)
  hashHigh = b
}
