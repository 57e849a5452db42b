/** A streamed message, read into events: whole server-sent events, each of which says in its data what it is. @hot */
import type { EngineAttempt, EngineSink } from '#kernel'
import { EventAnswerReader } from '#shared'
import { MessageAnswer, toStreamError } from './message-answer.ts'
import { readObject } from './read-object.ts'

export class MessageStreamReader extends EventAnswerReader {
  readonly #answer: MessageAnswer

  constructor(attempt: EngineAttempt, sink: EngineSink, maxEventBytes: number) {
    super(sink, maxEventBytes)
    this.#answer = new MessageAnswer(attempt, sink)
  }

  /** Without `message_stop` the answer was cut, and counts as such. */
  protected override take(text: string): boolean {
    const data = readObject(text)
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
      case 'error':
        this.sink.fail(toStreamError(data.error))
        return true
    }
    return false
  }
}
