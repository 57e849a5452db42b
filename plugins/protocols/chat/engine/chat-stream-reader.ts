/** A streamed chat answer, read into events: each server-sent event holds one chunk. @hot */
import type { EngineAttempt, EngineSink } from '#kernel'
import { answerErrors, EventAnswerReader } from '#shared'
import { AnswerEvents } from './answer-events.ts'
import { readChunk } from './chat-chunk.ts'
import { chatEngineErrors } from './errors.ts'

const DONE = '[DONE]'

export class ChatStreamReader extends EventAnswerReader {
  readonly #answer: AnswerEvents

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    super(sink, maxEventBytes)
    this.#answer = new AnswerEvents(attempt, sink)
  }

  protected override take(data: string): boolean {
    if (data === DONE) return this.#finish()
    const chunk = readChunk(data)
    if (chunk.error === undefined) {
      this.#answer.add(chunk)
      return this.#answer.isCutHere && this.#stopHere()
    }
    this.sink.fail(answerErrors.worker_stream_failed(chunk.error))
    return true
  }

  #stopHere(): true {
    this.#answer.finish()
    this.sink.stop()
    return true
  }

  /** `[DONE]` behind choices that never said why they ended is what some workers write when they were cut off. */
  #finish(): boolean {
    if (this.#answer.hasEnded) this.#answer.finish()
    else this.sink.fail(chatEngineErrors.worker_stream_unfinished())
    return true
  }

  /** Without [DONE] the answer is whole when its choices have ended; otherwise it was cut, and counts as such. */
  protected override ended(): void {
    if (this.#answer.hasEnded) this.#answer.finish()
  }
}
