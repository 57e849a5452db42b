/** A chat answer that comes whole: one JSON body, told as the events of a short stream. */
import { BodyExcerpt, type EngineAttempt, type EngineReader, type EngineSink } from '#contracts'
import { AnswerEvents } from './answer-events.ts'
import { readChunk } from './chat-chunk.ts'
import { chatEngineErrors } from './errors.ts'

export class WholeAnswerReader implements EngineReader {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #maxBytes: number
  readonly #body: BodyExcerpt

  constructor(attempt: EngineAttempt, sink: EngineSink, maxBytes: number) {
    this.#attempt = attempt
    this.#sink = sink
    this.#maxBytes = maxBytes
    this.#body = new BodyExcerpt(maxBytes)
  }

  onStart(): void {}

  onData(chunk: Buffer): void {
    this.#body.push(chunk)
    if (this.#body.isFull) this.#sink.fail(chatEngineErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    const answer = readChunk(this.#body.bytes().toString('utf8'))
    if (answer.error !== undefined) {
      this.#sink.fail(chatEngineErrors.worker_stream_failed(answer.error))
      return
    }
    const events = new AnswerEvents(this.#attempt, this.#sink)
    events.add(answer)
    events.finish()
  }
}
