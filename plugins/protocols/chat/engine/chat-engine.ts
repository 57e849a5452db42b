/** The engine adapter of HTTP workers that take chat completions. @hot */
import type { EngineAdapter } from '#kernel'
import { type AnswerLimits, AnswerReader, WholeAnswerReader } from '#shared'
import { ChatStreamReader } from './chat-stream-reader.ts'
import { toChatBody } from './to-chat-body.ts'
import { toCompletionBody } from './to-completion-body.ts'
import { tellAnswer } from './whole-answer.ts'

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
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => tellAnswer(attempt, sink, text)),
      ),
  }
}
