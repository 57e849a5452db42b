/** A response that comes whole: one JSON body, told as the events of a short stream. */
import { BodyExcerpt, type EngineAttempt, type EngineReader, type EngineSink } from '#contracts'
import { responsesEngineErrors } from './errors.ts'
import { ResponseAnswer } from './response-answer.ts'
import { readObject } from './wire.ts'

export class WholeResponseReader implements EngineReader {
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
    if (this.#body.isFull) this.#sink.fail(responsesEngineErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    const response = readObject(this.#body.bytes().toString('utf8'))
    new ResponseAnswer(this.#attempt, this.#sink).finish(response)
  }
}
