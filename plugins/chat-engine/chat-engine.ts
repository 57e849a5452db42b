/** The engine adapter of HTTP workers that take chat completions. @hot */
import type { EngineAdapter, EngineReader } from '#contracts'
import { isPlainEventStream } from '#kernel'
import { ChatStreamReader } from './chat-stream-reader.ts'
import type { ChatEngineConfig } from './config.ts'
import { toChatBody } from './to-chat-body.ts'
import { toCompletionBody } from './to-completion-body.ts'
import { WholeAnswerReader } from './whole-answer-reader.ts'

/** @source messages facts 9.3; responses facts 2.6, 2.7 */
export function chatEngine(config: ChatEngineConfig): EngineAdapter {
  return {
    name: 'chat',
    accepts: (worker) => worker.apis.includes('chat'),
    requestFor(attempt) {
      return attempt.request.prompt.kind === 'chat'
        ? { method: 'POST', path: '/v1/chat/completions', body: toChatBody(attempt) }
        : { method: 'POST', path: '/v1/completions', body: toCompletionBody(attempt) }
    },
    read(attempt, sink) {
      // Which of both it is, the worker's content type decides: engines may answer whole what was asked for as a stream.
      let reader: EngineReader | null = null
      return {
        onStart(headers) {
          reader = isPlainEventStream(headers)
            ? new ChatStreamReader(attempt, sink, config.maxEventBytes)
            : new WholeAnswerReader(attempt, sink, config.maxAnswerBytes)
          reader.onStart(headers)
        },
        onData: (chunk) => reader?.onData(chunk),
        onEnd: () => reader?.onEnd(),
      }
    },
  }
}
