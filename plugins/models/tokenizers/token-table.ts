/**
 * @hot
 * The bytes of every id of a vocabulary, in memory that all threads share: built once, read per token.
 */
/** Special token. */
export const SPECIAL = 1
/** Added token, special or not. */
export const ADDED = 2
/** One byte of a character without a piece of its own. */
export const BYTE = 4
/** Whole characters, which need no neighbours to be decoded. */
export const WHOLE = 8

export const HEADER_BYTES = 8

export class TokenTable {
  readonly memory: SharedArrayBuffer
  /** One more than the highest id. */
  readonly size: number
  readonly #ends: Uint32Array
  readonly #flags: Uint8Array
  readonly #bytes: Buffer
  /** Text of ids that are whole characters, created on first use. */
  readonly #texts: (string | undefined)[] = []

  /** @param memory of `buildTokenTable`, from any thread */
  constructor(memory: SharedArrayBuffer) {
    const [size, total] = new Uint32Array(memory, 0, 2)
    this.memory = memory
    this.size = size
    this.#ends = new Uint32Array(memory, HEADER_BYTES, size)
    this.#flags = new Uint8Array(memory, HEADER_BYTES + 4 * size, size)
    this.#bytes = Buffer.from(memory, HEADER_BYTES + 5 * size, total)
  }

  has(id: number): boolean {
    return id >= 0 && id < this.size && Number.isInteger(id)
  }

  isSpecial(id: number): boolean {
    return (this.#flags[id] & SPECIAL) !== 0
  }

  isAdded(id: number): boolean {
    return (this.#flags[id] & ADDED) !== 0
  }

  isByte(id: number): boolean {
    return (this.#flags[id] & BYTE) !== 0
  }

  isWhole(id: number): boolean {
    return (this.#flags[id] & WHOLE) !== 0
  }

  /** A view; of ids that `has` knows. */
  bytes(id: number): Buffer {
    return this.#bytes.subarray(id === 0 ? 0 : this.#ends[id - 1], this.#ends[id])
  }

  /** Whether a piece is made of these bytes. */
  equals(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const first = id === 0 ? 0 : this.#ends[id - 1]
    if (this.#ends[id] - first !== end - start) return false
    for (let at = start; at < end; at++) if (this.#bytes[first - start + at] !== bytes[at]) return false
    return true
  }

  /** Of ids for which `isWhole` is true. */
  text(id: number): string {
    const known = this.#texts[id]
    if (known !== undefined) return known
    const text = this.#bytes.toString('utf8', id === 0 ? 0 : this.#ends[id - 1], this.#ends[id])
    this.#texts[id] = text
    return text
  }
}
