/** The end of a stream whose length is not known. @hot */

/** Keeps the last bytes of a stream. */
export class StreamTail {
  readonly #size: number
  /** Twice the size, so that bytes are not moved with every chunk. */
  readonly #bytes: Buffer
  #used = 0

  /** @param size bytes */
  constructor(size: number) {
    this.#size = size
    this.#bytes = Buffer.allocUnsafe(size * 2)
  }

  push(chunk: Buffer): void {
    const size = this.#size
    const bytes = this.#bytes
    // `set` is faster than `copy` for a few bytes.
    if (chunk.length >= size) {
      bytes.set(chunk.subarray(chunk.length - size))
      this.#used = size
      return
    }
    if (this.#used + chunk.length > bytes.length) {
      bytes.copyWithin(0, this.#used - size, this.#used)
      this.#used = size
    }
    bytes.set(chunk, this.#used)
    this.#used += chunk.length
  }

  /** Valid until the next `push`. */
  bytes(): Buffer {
    return this.#bytes.subarray(Math.max(0, this.#used - this.#size), this.#used)
  }

  /** Resets the buffer for another stream. */
  clear(): void {
    this.#used = 0
  }
}
