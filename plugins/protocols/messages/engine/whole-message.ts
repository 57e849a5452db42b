/** A message that comes whole: one JSON body, told as the events of a short stream. */
import type { EngineAttempt, EngineSink } from '#kernel'
import { MessageAnswer, toStreamError } from './message-answer.ts'
import { readObject } from './read-object.ts'

export function tellMessage(attempt: EngineAttempt, sink: EngineSink, text: string): void {
  const message = readObject(text)
  if (message.type === 'error') {
    sink.fail(toStreamError(message.error))
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
