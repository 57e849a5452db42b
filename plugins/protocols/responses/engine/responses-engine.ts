/** The engine adapter of HTTP workers that take responses. @hot */
import type { EngineAdapter } from '#kernel'
import { AnswerReader, WholeAnswerReader } from '#shared'
import type { ResponsesEngineConfig } from './config.ts'
import { ResponseAnswer } from './response-answer.ts'
import { ResponseStreamReader } from './response-stream-reader.ts'
import { toResponsesBody } from './to-responses-body.ts'
import { readObject } from './wire.ts'

/** Below engines of other formats; a request that came as a response asks for this one by its name. */
const RANK = -2
const NAME = 'responses'

/** @source responses facts 1.2, 1.6, 3.2 */
export function responsesEngine(config: ResponsesEngineConfig): EngineAdapter {
  const toolTypes = config.toolTypes === null ? null : new Set(config.toolTypes)
  return {
    name: NAME,
    rank: RANK,
    accepts: (worker) => worker.apis.includes('responses'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/responses',
      body: toResponsesBody(attempt, toolTypes),
    }),
    read: (attempt, sink) =>
      new AnswerReader(
        () => new ResponseStreamReader(attempt, sink, config.maxEventBytes),
        () =>
          new WholeAnswerReader(sink, config.maxAnswerBytes, (text) =>
            new ResponseAnswer(attempt, sink).finish(readObject(text)),
          ),
      ),
  }
}
