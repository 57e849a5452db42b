/** The last bytes of a stream, whatever pieces it comes in. @hot */
import type { StreamJudge } from '#kernel'

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

/** Bytes that a format needs to see. */
const TAIL_BYTES = 1_024
/** Tails that wait for the next stream: a new one costs more than many chunks. */
const MAX_IDLE = 256
const idle: StreamTail[] = []

/** Judges streams by their last KiB. @param isComplete by the format */
export function judgeByTail(isComplete: (tail: Buffer) => boolean): () => StreamJudge {
  return () => new TailJudge(isComplete)
}

class TailJudge implements StreamJudge {
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
