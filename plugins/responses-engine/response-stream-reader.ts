/** A streamed response, read into events: whole server-sent events, each of which says in its data what it is. @hot */
import { type EngineAttempt, type EngineReader, type EngineSink, readEvent } from '#contracts'
import { EventSplitter, nextEventEnd } from '#kernel'
import { toAnswerError } from './answer-error.ts'
import { responsesEngineErrors } from './errors.ts'
import { ResponseAnswer } from './response-answer.ts'
import { isObject, type Json, readObject } from './wire.ts'

const DONE = '[DONE]'

export class ResponseStreamReader implements EngineReader {
  readonly #sink: EngineSink
  readonly #splitter = new EventSplitter()
  readonly #maxEventBytes: number
  readonly #answer: ResponseAnswer
  #isOver = false

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    this.#sink = sink
    this.#maxEventBytes = maxEventBytes
    this.#answer = new ResponseAnswer(attempt, sink)
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
      this.#sink.fail(responsesEngineErrors.worker_answer_too_long(this.#maxEventBytes))
    }
  }

  #read(bytes: Buffer): void {
    const event = readEvent(bytes)
    if (event === null || event.data === '' || event.data === DONE) return
    this.#take(readObject(event.data))
  }

  #take(data: Json): void {
    const answer = this.#answer
    const { output_index: index, delta } = data
    switch (data.type) {
      case 'response.output_text.delta':
        answer.text(index, delta, data.logprobs)
        return
      case 'response.function_call_arguments.delta':
        answer.arguments(index, delta)
        return
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        answer.reasoning(index, 'text', delta)
        return
      case 'response.reasoning_summary_text.delta':
        answer.reasoning(index, 'summary', delta)
        return
      case 'response.refusal.delta':
        answer.refusal(index, delta)
        return
      case 'response.output_text.annotation.added':
        answer.annotation(data.annotation)
        return
      case 'response.output_item.added':
        answer.openItem(index, data.item)
        return
      case 'response.output_item.done':
        answer.closeItem(index, data.item)
        return
      case 'response.created':
      case 'response.in_progress':
        answer.start(data.response)
        return
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#isOver = true
        answer.finish(data.response)
        return
      case 'error':
        this.#isOver = true
        this.#sink.fail(toAnswerError(isObject(data.error) ? data.error : data))
    }
  }

  /** Without a last event of its own the answer was cut, and counts as such; so does half an event at its end. */
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
