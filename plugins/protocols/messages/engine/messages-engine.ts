/** The engine adapter of HTTP workers that speak the Messages format, and the readers of their answers. @hot */
import type { EngineAdapter, EngineAttempt, EngineSink, JsonObject } from '#kernel'
import {
  type AnswerLimits,
  errorOfEvent,
  type JsonAnswer,
  jsonAnswerReader,
  messagesHeaders,
  readAnswerObject,
} from '#shared'
import { ENGINE, MessageAnswer, toStreamError } from './message-answer.ts'
import { ignoredByMessages, toMessagesBody } from './to-messages-body.ts'

/** Below the other formats: a worker that speaks several gets the one that can express the most. */
const RANK = -1

export interface MessagesEngineSettings extends AnswerLimits {
  /** `max_tokens` of requests whose client sets none. */
  readonly defaultMaxTokens: number
}

export function messagesEngine({ maxAnswerBytes, defaultMaxTokens }: MessagesEngineSettings): EngineAdapter {
  return {
    name: ENGINE,
    rank: RANK,
    promptKinds: ['chat'],
    takesFileUrls: true,
    accepts: (worker) => worker.apis.includes('messages'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/messages',
      headers: messagesHeaders(attempt.ctx),
      body: toMessagesBody(attempt, defaultMaxTokens),
    }),
    ignored: ignoredByMessages,
    read: (attempt, sink) => jsonAnswerReader(new MessageJson(attempt, sink), sink, maxAnswerBytes),
  }
}

/** The JSON of a message, streamed or whole: the data of each event states its type. */
export class MessageJson implements JsonAnswer {
  readonly toError = toStreamError
  readonly #sink: EngineSink
  readonly #answer: MessageAnswer

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#sink = sink
    this.#answer = new MessageAnswer(attempt, sink)
  }

  /** A stream without `message_stop` was cut off. */
  addEvent(data: JsonObject): boolean {
    const answer = this.#answer
    answer.noteEvent(data)
    switch (data.type) {
      case 'content_block_delta':
        answer.addDelta(data.index, data.delta)
        break
      case 'content_block_start':
        answer.openBlock(data.index, data.content_block)
        break
      case 'content_block_stop':
        answer.closeBlock(data.index)
        break
      case 'message_start':
        answer.start(data.message)
        break
      case 'message_delta':
        answer.addEnd(data)
        break
      case 'message_stop':
        answer.finish()
        return true
    }
    return false
  }

  /** @throws as `readAnswerObject` */
  addWhole(text: string): void {
    const message = readAnswerObject(text)
    const error = errorOfEvent(message, null)
    if (error !== null) {
      this.#sink.fail(toStreamError(error))
      return
    }
    const answer = this.#answer
    answer.noteMessage(message)
    answer.start(message)
    if (Array.isArray(message.content))
      for (const [index, block] of message.content.entries()) {
        answer.openBlock(index, block)
        answer.closeBlock(index)
      }
    const { stop_reason, stop_sequence } = message
    answer.addEnd({ ...message, delta: { stop_reason, stop_sequence } })
    answer.finish()
  }
}
