/** The engine adapter of HTTP workers that take messages. @hot */
import type { EngineAdapter } from '#kernel'
import { type AnswerLimits, AnswerReader, messagesHeaders, WholeAnswerReader } from '#shared'
import { ENGINE } from './message-answer.ts'
import { MessageStreamReader } from './message-stream-reader.ts'
import { toMessagesBody } from './to-messages-body.ts'
import { tellMessage } from './whole-message.ts'

/** Below engines of other formats: a worker that takes several is asked in the one that can say the most. */
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
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => tellMessage(attempt, sink, text)),
      ),
  }
}
