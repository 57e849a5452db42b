/** Stream completion check: whether a relayed stream ended completely, by its last bytes. @hot */
import { type StreamCompletionCheck, type StreamEnd, StreamTail } from '#kernel'

/** Bytes of the tail that a format can inspect. */
const TAIL_BYTES = 1_024
/** Buffers kept for reuse, because allocating one costs more than processing many chunks. */
const MAX_IDLE = 256
const idle: StreamTail[] = []

/** @param endOf decides by the last KiB of the stream */
export function streamCompletionCheck(endOf: (tail: Buffer) => StreamEnd): () => StreamCompletionCheck {
  return () => new TailCheck(endOf)
}

class TailCheck implements StreamCompletionCheck {
  readonly #endOf: (tail: Buffer) => StreamEnd
  readonly #tail = idle.pop() ?? new StreamTail(TAIL_BYTES)

  constructor(endOf: (tail: Buffer) => StreamEnd) {
    this.#endOf = endOf
  }

  take(chunk: Buffer): void {
    this.#tail.push(chunk)
  }

  end(): StreamEnd {
    return this.#endOf(this.#tail.bytes())
  }

  leave(): void {
    if (idle.length >= MAX_IDLE) return
    this.#tail.clear()
    idle.push(this.#tail)
  }
}
