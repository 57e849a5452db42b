/** Judges relayed streams by how they end. @hot */
import type { StreamJudge } from '#kernel'
import { StreamTail } from './stream-tail.ts'

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
