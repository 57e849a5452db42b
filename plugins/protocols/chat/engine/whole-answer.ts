/** A chat answer that comes whole: one JSON body, told as the events of a short stream. */
import type { EngineAttempt, EngineSink } from '#kernel'
import { answerErrors } from '#shared'
import { AnswerEvents } from './answer-events.ts'
import { readChunk } from './chat-chunk.ts'

export function tellAnswer(attempt: EngineAttempt, sink: EngineSink, text: string): void {
  const answer = readChunk(text)
  if (answer.error !== undefined) {
    sink.fail(answerErrors.worker_stream_failed(answer.error))
    return
  }
  const events = new AnswerEvents(attempt, sink)
  events.add(answer)
  events.finish()
}
