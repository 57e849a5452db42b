/** The engine adapter of HTTP workers that take chat completions, and the readers of their answers. @hot */
import { defineErrors, type EngineAdapter, type EngineAttempt, type EngineSink } from '#kernel'
import {
  type AnswerLimits,
  AnswerReader,
  EventAnswerReader,
  errorOfEvent,
  readAnswerObject,
  readStreamEvent,
  streamFailure,
  WholeAnswerReader,
} from '#shared'
import { AnswerEvents } from './answer-events.ts'
import { toChatBody, toCompletionBody } from './to-chat-body.ts'

const chatEngineErrors = defineErrors('chat-engine', {
  worker_stream_unfinished: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker ended its stream with [DONE] but without a finish_reason',
  },
})

export interface ChatEngineSettings extends AnswerLimits {
  /** Whether engines get one system message in front, or all as they are. */
  readonly systemMessages: 'merge' | 'keep'
}

export function chatEngine({ maxAnswerBytes, systemMessages }: ChatEngineSettings): EngineAdapter {
  return {
    name: 'chat',
    accepts: (worker) => worker.apis.includes('chat'),
    requestFor(attempt) {
      return attempt.request.prompt.kind === 'chat'
        ? {
            method: 'POST',
            path: '/v1/chat/completions',
            body: toChatBody(attempt, systemMessages === 'merge'),
          }
        : { method: 'POST', path: '/v1/completions', body: toCompletionBody(attempt) }
    },
    read: (attempt, sink) =>
      new AnswerReader(
        () => new ChatStreamReader(attempt, sink, maxAnswerBytes),
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => readAnswer(attempt, sink, text)),
      ),
  }
}

/** Workers that take completions only: prompts of texts and tokens. */
export function completionsEngine(settings: ChatEngineSettings): EngineAdapter {
  return {
    ...chatEngine(settings),
    name: 'completions',
    // An adapter of a plugin takes precedence.
    rank: -1,
    accepts: (worker) => worker.apis.includes('completions'),
    promptKinds: ['text', 'tokens'],
  }
}

const DONE = '[DONE]'

/** Reads a streamed answer: each server-sent event holds one chunk. */
export class ChatStreamReader extends EventAnswerReader {
  readonly #answer: AnswerEvents

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    super(sink, maxEventBytes)
    this.#answer = new AnswerEvents(attempt, sink)
  }

  protected override take(data: string, name: string | null): boolean {
    if (data === DONE) return this.#finish()
    const chunk = readStreamEvent(data, name)
    const error = errorOfEvent(chunk, name)
    if (error === null) {
      this.#answer.add(chunk)
      return this.#answer.isCutHere && this.#stopHere()
    }
    this.sink.fail(streamFailure(error.text))
    return true
  }

  #stopHere(): true {
    this.#answer.finish()
    this.sink.stop()
    return true
  }

  /** Some workers write `[DONE]` after an answer that was cut off: its choices have no finish reason then. */
  #finish(): boolean {
    if (this.#answer.hasEnded) this.#answer.finish()
    else this.sink.fail(chatEngineErrors.worker_stream_unfinished())
    return true
  }

  /** Without `[DONE]` the answer is complete if its choices have ended. */
  protected override ended(): void {
    if (this.#answer.hasEnded) this.#answer.finish()
  }
}

/** Reads an answer that comes as one JSON body. @throws as `readAnswerObject` */
export function readAnswer(attempt: EngineAttempt, sink: EngineSink, text: string): void {
  const answer = readAnswerObject(text)
  const error = errorOfEvent(answer, null)
  if (error !== null) {
    sink.fail(streamFailure(error.text))
    return
  }
  const events = new AnswerEvents(attempt, sink)
  events.add(answer)
  events.finish()
}
