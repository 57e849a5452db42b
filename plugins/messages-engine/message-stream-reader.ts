/** A streamed message, read into events: whole server-sent events, each of which says in its data what it is. @hot */
import { type EngineAttempt, type EngineReader, type EngineSink, readEvent } from '#contracts'
import { EventSplitter, nextEventEnd } from '#kernel'
import { messagesEngineErrors } from './errors.ts'
import { MessageAnswer, toStreamError } from './message-answer.ts'
import { readObject } from './read-object.ts'

export class MessageStreamReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  readonly #answer: MessageAnswer
  #isOver = false

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    this.#sink = sink
    this.#maxEventBytes = maxEventBytes
    this.#answer = new MessageAnswer(attempt, sink)
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
      this.#sink.fail(messagesEngineErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(bytes)
    if (event === null || event.data === '') return
    const data = readObject(event.data)
    const answer = this.#answer
    switch (data.type) {
      case 'content_block_delta':
        answer.addDelta(data.index, data.delta)
        return
      case 'content_block_start':
        answer.openBlock(data.index, data.content_block)
        return
      case 'content_block_stop':
        answer.closeBlock(data.index)
        return
      case 'message_start':
        answer.start(data.message)
        return
      case 'message_delta':
        answer.addEnd(data.delta, data.usage)
        return
      case 'message_stop':
        this.#isOver = true
        answer.finish()
        return
      case 'error':
        this.#isOver = true
        this.#sink.fail(toStreamError(data.error))
    }
  }

  /** Without `message_stop` the answer was cut, and counts as such; so does half an event at its end. */
  onEnd(): void {
    const rest = this.#splitter.takeRest()
    if (this.#isOver || rest.length === 0) return
    try {
      this.#read(rest)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
    }
  }
}
