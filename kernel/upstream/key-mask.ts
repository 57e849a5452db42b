/**
 * Masks the key of a worker in what the worker sends: some repeat it in their errors. Each byte is replaced by one other byte,
 * so that a Content-Length stays true. @hot
 */
import type { WorkerEntry } from '../contracts/worker.ts'

/** A shorter key may occur in any text. */
const MIN_KEY_BYTES = 8
const MASK = '*'

export class KeyMask {
  readonly #key: Buffer
  /** End of the bytes so far that may be the beginning of the key; null for none. */
  #held: Buffer | null = null

  private constructor(key: Buffer) {
    this.#key = key
  }

  /** Null for a worker without a key. */
  static of({ apiKey }: WorkerEntry): KeyMask | null {
    if (apiKey === null || apiKey.length < MIN_KEY_BYTES) return null
    return new KeyMask(Buffer.from(apiKey))
  }

  /**
   * @param chunk may be changed
   * @returns the bytes to pass on now; empty if there are none
   */
  pass(chunk: Buffer): Buffer {
    const key = this.#key
    const bytes = this.#held === null ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = null
    for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + key.length))
      bytes.fill(MASK, at, at + key.length)
    const end = this.#partialKeyAt(bytes)
    if (end === bytes.length) return bytes
    this.#held = Buffer.from(bytes.subarray(end))
    return bytes.subarray(0, end)
  }

  /** Bytes that were held back until the end. */
  rest(): Buffer | null {
    return this.#held
  }

  /** Start of a beginning of the key at the end of the bytes; their length if there is none. */
  #partialKeyAt(bytes: Buffer): number {
    const first = this.#key[0]
    for (let at = Math.max(0, bytes.length - this.#key.length + 1); at < bytes.length; at++)
      if (bytes[at] === first && bytes.compare(this.#key, 0, bytes.length - at, at) === 0) return at
    return bytes.length
  }
}
