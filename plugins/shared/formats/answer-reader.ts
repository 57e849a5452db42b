/**
 * Reads an answer that may come whole or as a stream. The worker's content type decides: engines may answer whole what was
 * asked for as a stream.
 */

import type { EngineReader } from '#kernel'
import { type HeaderList, isPlainEventStream } from '#kernel'

export interface AnswerLimits {
  /** Maximum size of a whole answer, or of one event of a stream, in bytes. */
  readonly maxAnswerBytes: number
}

export class AnswerReader implements EngineReader {
  readonly #streamed: () => EngineReader
  readonly #whole: () => EngineReader
  #reader: EngineReader | null = null

  constructor(streamed: () => EngineReader, whole: () => EngineReader) {
    this.#streamed = streamed
    this.#whole = whole
  }

  onStart(headers: HeaderList): void {
    this.#reader = isPlainEventStream(headers) ? this.#streamed() : this.#whole()
  }

  onData(chunk: Buffer): void {
    this.#reader?.onData(chunk)
  }

  onEnd(): void {
    this.#reader?.onEnd()
  }
}
