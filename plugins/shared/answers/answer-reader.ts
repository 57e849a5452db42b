/** Readers of worker responses: complete bodies, and the choice between a body and an event stream. */
import { type EngineReader, type EngineSink, type HeaderList, isPlainEventStream } from '#kernel'
import { answerErrors } from './answer-errors.ts'
import { BodyExcerpt } from './body-excerpt.ts'

export interface AnswerLimits {
  /** Maximum size of a complete body, or of one event of a stream, in bytes. */
  readonly maxAnswerBytes: number
}

/** Chooses the reader by content type, because engines may not stream although it was requested. */
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

/** Collects a complete body within a size limit. */
export class WholeAnswerReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #maxBytes: number
  readonly #body: BodyExcerpt
  readonly #onText: (text: string) => void

  /** @param onText passes the body to the sink; an exception fails the answer */
  constructor(sink: EngineSink, maxBytes: number, onText: (text: string) => void) {
    this.#sink = sink
    this.#maxBytes = maxBytes
    this.#body = new BodyExcerpt(maxBytes)
    this.#onText = onText
  }

  onStart(): void {}

  onData(chunk: Buffer): void {
    this.#body.push(chunk)
    if (this.#body.isFull) this.#sink.fail(answerErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    this.#onText(this.#body.bytes().toString('utf8'))
  }
}
