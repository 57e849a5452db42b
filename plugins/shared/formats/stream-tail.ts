/** The last bytes of a stream, whatever pieces it comes in. @hot */

export class StreamTail {
  readonly #size: number
  /** Twice the size, so that bytes are moved once in a while and not with every chunk. */
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
    // `set` and not `copy`, which checks for longer than these few bytes take.
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

  /** For another stream. */
  clear(): void {
    this.#used = 0
  }
}
