/** The engine adapter of HTTP workers that take chat completions, and the readers of their answers. @hot */
import { defineErrors, type EngineAdapter, type EngineAttempt, type EngineSink } from '#kernel'
import { type AnswerLimits, AnswerReader, answerErrors, EventAnswerReader, WholeAnswerReader } from '#shared'
import { AnswerEvents } from './answer-events.ts'
import { readChunk } from './chat-chunk.ts'
import { toChatBody, toCompletionBody } from './to-chat-body.ts'

export const chatEngineErrors = defineErrors('chat-engine', {
  worker_stream_unfinished: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker ended its stream without a word why',
  },
})

export function chatEngine({ maxAnswerBytes }: AnswerLimits): EngineAdapter {
  return {
    name: 'chat',
    accepts: (worker) => worker.apis.includes('chat'),
    requestFor(attempt) {
      return attempt.request.prompt.kind === 'chat'
        ? { method: 'POST', path: '/v1/chat/completions', body: toChatBody(attempt) }
        : { method: 'POST', path: '/v1/completions', body: toCompletionBody(attempt) }
    },
    read: (attempt, sink) =>
      new AnswerReader(
        () => new ChatStreamReader(attempt, sink, maxAnswerBytes),
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => readAnswer(attempt, sink, text)),
      ),
  }
}

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

export function readAnswer(attempt: EngineAttempt, sink: EngineSink, text: string): void {
  const answer = readChunk(text)
  if (answer.error !== undefined) {
    sink.fail(answerErrors.worker_stream_failed(answer.error))
    return
  }
  const events = new AnswerEvents(attempt, sink)
  events.add(answer)
  events.finish()
}
