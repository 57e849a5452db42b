/** Stream completion check: whether a relayed stream ended completely, by its last bytes. @hot */
import type { StreamCompletionCheck } from '#kernel'

/** Bytes of the tail that a format can inspect. */
const TAIL_BYTES = 1_024
/** Buffers kept for reuse, because allocating one costs more than processing many chunks. */
const MAX_IDLE = 256
const idle: StreamTail[] = []

/** @param isComplete decides by the last KiB of the stream */
export function streamCompletionCheck(isComplete: (tail: Buffer) => boolean): () => StreamCompletionCheck {
  return () => new TailCheck(isComplete)
}

class TailCheck implements StreamCompletionCheck {
  readonly #isComplete: (tail: Buffer) => boolean
  readonly #tail = idle.pop() ?? new StreamTail(TAIL_BYTES)

  constructor(isComplete: (tail: Buffer) => boolean) {
    this.#isComplete = isComplete
  }

  take(chunk: Buffer): void {
    this.#tail.push(chunk)
  }

  isWhole(): boolean {
    return this.#isComplete(this.#tail.bytes())
  }

  leave(): void {
    if (idle.length >= MAX_IDLE) return
    this.#tail.clear()
    idle.push(this.#tail)
  }
}

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
