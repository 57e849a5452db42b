/** A streamed answer, read event by event within limits; what an event means is up to the format. @hot */

import type { EngineReader, EngineSink } from '#kernel'
import { EventSplitter, nextEventEnd } from '#kernel'
import { answerErrors } from './answer-errors.ts'
import { readEvent } from './sse-event.ts'

export abstract class EventAnswerReader implements EngineReader {
  protected readonly sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  #isOver = false

  constructor(sink: EngineSink, maxEventBytes: number) {
    this.sink = sink
    this.#maxEventBytes = maxEventBytes
  }

  /**
   * One event.
   * @param data never empty
   * @returns true when the answer is over: finished, or failed
   * @throws SyntaxError for data that is not whole
   */
  protected abstract take(data: string): boolean

  /** The stream is over, and no event has said so: unless the answer is whole all the same, it was cut. */
  protected ended(): void {}

  onStart(): void {}

  onData(chunk: Buffer): void {
    if (this.#isOver) return
    const events = this.#splitter.push(chunk)
    for (let at = 0; at < events.length && !this.#isOver; ) {
      const end = nextEventEnd(events, at)
      this.#read(events.subarray(at, end < 0 ? events.length : end))
      at = end < 0 ? events.length : end
    }
    if (this.#splitter.waitingBytes > this.#maxEventBytes) {
      this.#isOver = true
      this.sink.fail(answerErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(bytes)
    if (event !== null && event.data !== '') this.#isOver = this.take(event.data)
  }

  /** Some workers leave out the last empty line; half an event at the end was cut. */
  onEnd(): void {
    const rest = this.#splitter.takeRest()
    if (this.#isOver) return
    try {
      if (rest.length > 0) this.#read(rest)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
    }
    if (!this.#isOver) this.ended()
  }
}
