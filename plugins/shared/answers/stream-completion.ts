/** Stream completion check: whether a relayed stream ended completely, by its last bytes. @hot */
import { type StreamCompletionCheck, StreamTail } from '#kernel'

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
