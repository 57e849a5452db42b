/** The beginning of a body, up to a limit. */
export class BodyExcerpt {
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #byteCount = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether the body exceeds the limit. */
  get isFull(): boolean {
    return this.#byteCount > this.#maxBytes
  }

  /** @param chunk copied, unless the excerpt is full */
  push(chunk: Buffer): void {
    if (!this.isFull) this.#chunks.push(Buffer.from(chunk))
    this.#byteCount += chunk.length
  }

  bytes(): Buffer {
    const all = Buffer.concat(this.#chunks)
    return all.length > this.#maxBytes ? all.subarray(0, this.#maxBytes) : all
  }
}
