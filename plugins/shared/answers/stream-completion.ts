/** Stream completion check: whether a relayed stream ended completely, by its last bytes. @hot */
import { type StreamCompletionCheck, type StreamEnd, StreamTail } from '#kernel'

/** Bytes of the tail that a format can inspect. */
const TAIL_BYTES = 1_024
/** Buffers kept for reuse, because allocating one costs more than processing many chunks. */
const MAX_IDLE = 256
const NO_BYTES = Buffer.alloc(0)
const idle: StreamTail[] = []

/** @param endOf decides by the last KiB of the stream */
export function streamCompletionCheck(endOf: (tail: Buffer) => StreamEnd): () => StreamCompletionCheck {
  return () => new TailCheck(endOf)
}

/** The last bytes of a stream that a format inspects. Released by `giveTail`. */
export function takeTail(): StreamTail {
  return idle.pop() ?? new StreamTail(TAIL_BYTES)
}

export function giveTail(tail: StreamTail): void {
  if (idle.length >= MAX_IDLE) return
  tail.clear()
  idle.push(tail)
}

class TailCheck implements StreamCompletionCheck {
  readonly #endOf: (tail: Buffer) => StreamEnd
  readonly #tail = takeTail()

  constructor(endOf: (tail: Buffer) => StreamEnd) {
    this.#endOf = endOf
  }

  pass(chunk: Buffer): Buffer {
    this.#tail.push(chunk)
    return chunk
  }

  end(): StreamEnd {
    return this.#endOf(this.#tail.bytes())
  }

  rest(): Buffer {
    return NO_BYTES
  }

  leave(): void {
    giveTail(this.#tail)
  }
}
