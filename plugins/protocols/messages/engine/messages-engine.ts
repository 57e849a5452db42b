/** The engine adapter of HTTP workers that speak the Messages format, and the readers of their answers. @hot */
import type { EngineAdapter, EngineAttempt, EngineSink } from '#kernel'
import {
  type AnswerLimits,
  AnswerReader,
  EventAnswerReader,
  errorOfEvent,
  messagesHeaders,
  readAnswerObject,
  readStreamEvent,
  WholeAnswerReader,
} from '#shared'
import { ENGINE, MessageAnswer, toStreamError } from './message-answer.ts'
import { toMessagesBody } from './to-messages-body.ts'

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
    accepts: (worker) => worker.apis.includes('messages'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/messages',
      headers: messagesHeaders(attempt.ctx),
      body: toMessagesBody(attempt, defaultMaxTokens),
    }),
    read: (attempt, sink) =>
      new AnswerReader(
        () => new MessageStreamReader(attempt, sink, maxAnswerBytes),
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => readMessage(attempt, sink, text)),
      ),
  }
}

/** Reads a streamed message: the data of each server-sent event states its type. */
export class MessageStreamReader extends EventAnswerReader {
  readonly #answer: MessageAnswer

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    super(sink, maxEventBytes)
    this.#answer = new MessageAnswer(attempt, sink)
  }

  /** A stream without `message_stop` was cut off. */
  protected override take(text: string, name: string | null): boolean {
    const data = readStreamEvent(text, name)
    const error = errorOfEvent(data, name)
    if (error !== null) {
      this.sink.fail(toStreamError(error))
      return true
    }
    const answer = this.#answer
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
        answer.addEnd(data.delta, data.usage)
        break
      case 'message_stop':
        answer.finish()
        return true
    }
    return false
  }
}

/** Reads a message that comes as one JSON body. @throws as `readAnswerObject` */
export function readMessage(attempt: EngineAttempt, sink: EngineSink, text: string): void {
  const message = readAnswerObject(text)
  const error = errorOfEvent(message, null)
  if (error !== null) {
    sink.fail(toStreamError(error))
    return
  }
  const answer = new MessageAnswer(attempt, sink)
  answer.start(message)
  if (Array.isArray(message.content))
    for (const [index, block] of message.content.entries()) {
      answer.openBlock(index, block)
      answer.closeBlock(index)
    }
  answer.addEnd(message, message.usage)
  answer.finish()
}
