/** Splits the bytes of a stream into gRPC messages: a flag, a length, and the message. @hot */

const HEAD_BYTES = 5

/** An invalid or too long message. */
export class FramingError extends Error {}

export class MessageFramer {
  readonly #maxBytes: number
  /** Unread chunk. */
  #chunk: Buffer | null = null
  #at = 0
  /** Chunks of an incomplete message. */
  #parts: Buffer[] = []
  #partBytes = 0

  /** @param maxBytes longest message */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Only after `next` returned null. */
  push(chunk: Buffer): void {
    if (this.#partBytes === 0) {
      this.#chunk = chunk
      this.#at = 0
      return
    }
    this.#parts.push(chunk)
    this.#partBytes += chunk.length
    if (this.#partBytes < this.#wanted()) return
    this.#chunk = Buffer.concat(this.#parts, this.#partBytes)
    this.#at = 0
    this.#parts = []
    this.#partBytes = 0
  }

  /** Length of the message that starts with the parts; of its header alone if that is incomplete or the message too long. */
  #wanted(): number {
    // Rare: the header itself is split, so join the parts.
    if (this.#parts[0].length < HEAD_BYTES) this.#parts = [Buffer.concat(this.#parts, this.#partBytes)]
    const first = this.#parts[0]
    const length = first.length < HEAD_BYTES ? 0 : first.readUInt32BE(1)
    return length > this.#maxBytes ? HEAD_BYTES : HEAD_BYTES + length
  }

  /** The next complete message as a view of the pushed bytes; null if more bytes are needed. @throws FramingError */
  next(): Buffer | null {
    const chunk = this.#chunk
    if (chunk === null) return null
    const at = this.#at
    const left = chunk.length - at
    if (left >= HEAD_BYTES) {
      const length = chunk.readUInt32BE(at + 1)
      if (chunk[at] !== 0) throw new FramingError('the message is compressed, which was not negotiated')
      if (length > this.#maxBytes)
        throw new FramingError(`the message of ${length} bytes exceeds the limit of ${this.#maxBytes} bytes`)
      const start = at + HEAD_BYTES
      if (left >= HEAD_BYTES + length) {
        this.#at = start + length
        if (this.#at === chunk.length) this.#chunk = null
        return chunk.subarray(start, start + length)
      }
    }
    this.#chunk = null
    this.#parts.push(at === 0 ? chunk : chunk.subarray(at))
    this.#partBytes = left
    return null
  }

  /** The bytes end inside a message. */
  get isCut(): boolean {
    return this.#partBytes > 0 || this.#chunk !== null
  }
}

/** Encodes an uncompressed message with its length prefix. */
export function framed(body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + body.length)
  bytes[0] = 0
  bytes.writeUInt32BE(body.length, 1)
  body.copy(bytes, HEAD_BYTES)
  return bytes
}
