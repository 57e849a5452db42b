/** An answer that comes whole, collected within a limit; what it holds is up to the format. */
import type { EngineReader, EngineSink } from '#kernel'
import { answerErrors } from './answer-errors.ts'
import { BodyExcerpt } from './body-excerpt.ts'

export class WholeAnswerReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #maxBytes: number
  readonly #body: BodyExcerpt
  readonly #tell: (text: string) => void

  /** @param tell gives the answer to the sink; what it throws fails the answer */
  constructor(sink: EngineSink, maxBytes: number, tell: (text: string) => void) {
    this.#sink = sink
    this.#maxBytes = maxBytes
    this.#body = new BodyExcerpt(maxBytes)
    this.#tell = tell
  }

  onStart(): void {}

  onData(chunk: Buffer): void {
    this.#body.push(chunk)
    if (this.#body.isFull) this.#sink.fail(answerErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    this.#tell(this.#body.bytes().toString('utf8'))
  }
}
