/** Cuts the bytes of a stream into gRPC's messages: a flag, a length, and so many bytes. @hot */

const HEAD_BYTES = 5

/** Bytes that are no messages, or more of them than is allowed. */
export class FramingError extends Error {
  /** A gRPC status. */
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'FramingError'
    this.code = code
  }
}

const INTERNAL = 13
const RESOURCE_EXHAUSTED = 8

export class MessageFramer {
  readonly #maxBytes: number
  /** Read, but not taken yet. */
  #chunk: Buffer | null = null
  #at = 0
  /** Chunks that end inside of a message, and what they hold of it. */
  #parts: Buffer[] = []
  #partBytes = 0

  /** @param maxBytes longest message */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Only after `next` has said that there is no more. */
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

  /** Bytes of a message that begins with the parts; of its head alone where that is not whole, or the rest is not wanted. */
  #wanted(): number {
    // So short a beginning is rare: it becomes one part with what follows.
    if (this.#parts[0].length < HEAD_BYTES) this.#parts = [Buffer.concat(this.#parts, this.#partBytes)]
    const first = this.#parts[0]
    const length = first.length < HEAD_BYTES ? 0 : first.readUInt32BE(1)
    return length > this.#maxBytes ? HEAD_BYTES : HEAD_BYTES + length
  }

  /** The next whole message, a view of what was pushed; null when more bytes are needed. @throws FramingError */
  next(): Buffer | null {
    const chunk = this.#chunk
    if (chunk === null) return null
    const at = this.#at
    const left = chunk.length - at
    if (left >= HEAD_BYTES) {
      const length = chunk.readUInt32BE(at + 1)
      if (chunk[at] !== 0) throw new FramingError(INTERNAL, 'a message is compressed, which was not offered')
      if (length > this.#maxBytes)
        throw new FramingError(RESOURCE_EXHAUSTED, `a message of ${length} bytes is longer than allowed`)
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

  /** The bytes end inside of a message. */
  get isCut(): boolean {
    return this.#partBytes > 0 || this.#chunk !== null
  }
}

/** A message as it goes on the wire: not compressed, its length in front. */
export function framed(body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + body.length)
  bytes[0] = 0
  bytes.writeUInt32BE(body.length, 1)
  body.copy(bytes, HEAD_BYTES)
  return bytes
}
