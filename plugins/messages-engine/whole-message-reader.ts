/** A message that comes whole: one JSON body, told as the events of a short stream. */
import { BodyExcerpt, type EngineAttempt, type EngineReader, type EngineSink } from '#contracts'
import { messagesEngineErrors } from './errors.ts'
import { MessageAnswer, toStreamError } from './message-answer.ts'
import { readObject } from './read-object.ts'

export class WholeMessageReader implements EngineReader {
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
    if (this.#body.isFull) this.#sink.fail(messagesEngineErrors.worker_answer_too_long(this.#maxBytes))
  }

  onEnd(): void {
    const message = readObject(this.#body.bytes().toString('utf8'))
    if (message.type === 'error') {
      this.#sink.fail(toStreamError(message.error))
      return
    }
    const answer = new MessageAnswer(this.#attempt, this.#sink)
    answer.start(message)
    if (Array.isArray(message.content))
      for (const [index, block] of message.content.entries()) {
        answer.openBlock(index, block)
        answer.closeBlock(index)
      }
    answer.addEnd(message, message.usage)
    answer.finish()
  }
}
