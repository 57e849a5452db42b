/** The engine adapter of HTTP workers that take messages. @hot */
import { type EngineAdapter, type EngineReader, messagesHeaders } from '#contracts'
import { isPlainEventStream } from '#kernel'
import type { MessagesEngineConfig } from './config.ts'
import { MessageStreamReader } from './message-stream-reader.ts'
import { toMessagesBody } from './to-messages-body.ts'
import { WholeMessageReader } from './whole-message-reader.ts'

/** Below engines of other formats: a worker that takes several is asked in the one that can say the most. */
const RANK = -1

/** @source messages facts 3, 4, 5 */
export function messagesEngine(config: MessagesEngineConfig): EngineAdapter {
  return {
    name: 'messages',
    rank: RANK,
    accepts: (worker) => worker.apis.includes('messages'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/messages',
      headers: messagesHeaders(attempt.ctx),
      body: toMessagesBody(attempt, config.defaultMaxTokens),
    }),
    read(attempt, sink) {
      let reader: EngineReader | null = null
      return {
        onStart(headers) {
          reader = isPlainEventStream(headers)
            ? new MessageStreamReader(attempt, sink, config.maxEventBytes)
            : new WholeMessageReader(attempt, sink, config.maxAnswerBytes)
          reader.onStart(headers)
        },
        onData: (chunk) => reader?.onData(chunk),
        onEnd: () => reader?.onEnd(),
      }
    },
  }
}
