/** A streamed chat answer, read into events: whole server-sent events, one JSON chunk each. @hot */
import { type EngineAttempt, type EngineReader, type EngineSink, readEvent } from '#contracts'
import { EventSplitter, nextEventEnd } from '#kernel'
import { AnswerEvents } from './answer-events.ts'
import { readChunk } from './chat-chunk.ts'
import { chatEngineErrors } from './errors.ts'

const DONE = '[DONE]'

export class ChatStreamReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  readonly #answer: AnswerEvents
  #isOver = false

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    this.#sink = sink
    this.#maxEventBytes = maxEventBytes
    this.#answer = new AnswerEvents(attempt, sink)
  }

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
      this.#sink.fail(chatEngineErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(bytes)
    if (event === null) return
    if (event.data === DONE) this.#finish()
    else if (event.data !== '') this.#take(event.data)
  }

  #take(data: string): void {
    const chunk = readChunk(data)
    if (chunk.error === undefined) this.#answer.add(chunk)
    else {
      this.#isOver = true
      this.#sink.fail(chatEngineErrors.worker_stream_failed(chunk.error))
    }
  }

  /** Some workers leave out the last empty line; what cannot be read was cut, which is told as such. */
  #readRest(rest: Buffer): void {
    try {
      this.#read(rest)
    } catch {
      // The answer is not finished then, and the generation says so.
    }
  }

  /** `[DONE]` behind choices that never said why they ended is what some workers write when they were cut off. */
  #finish(): void {
    this.#isOver = true
    if (this.#answer.hasEnded) this.#answer.finish()
    else this.#sink.fail(chatEngineErrors.worker_stream_unfinished())
  }

  onEnd(): void {
    // Without [DONE] the answer is whole when its choices have ended; otherwise it was cut, and counts as such.
    const rest = this.#splitter.takeRest()
    if (!this.#isOver && rest.length > 0) this.#readRest(rest)
    if (!this.#isOver && this.#answer.hasEnded) this.#answer.finish()
  }
}
