/** The engine adapter of HTTP workers that take responses. @hot */
import type { EngineAdapter } from '#kernel'
import { type AnswerLimits, AnswerReader, readAnswerObject, WholeAnswerReader } from '#shared'
import { ENGINE, ResponseAnswer } from './response-answer.ts'
import { ResponseStreamReader } from './response-stream-reader.ts'
import { toResponsesBody } from './to-responses-body.ts'

/** Lower than engines of other formats; Responses requests select this engine by name. */
const RANK = -2

export interface ResponsesEngineSettings extends AnswerLimits {
  /** Types of tools that are sent to workers; null sends all. */
  readonly toolTypes: readonly string[] | null
}

export function responsesEngine({ maxAnswerBytes, toolTypes }: ResponsesEngineSettings): EngineAdapter {
  const sentTypes = toolTypes === null ? null : new Set(toolTypes)
  return {
    name: ENGINE,
    rank: RANK,
    accepts: (worker) => worker.apis.includes('responses'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/responses',
      body: toResponsesBody(attempt, sentTypes),
    }),
    read: (attempt, sink) =>
      new AnswerReader(
        () => new ResponseStreamReader(attempt, sink, maxAnswerBytes),
        () =>
          new WholeAnswerReader(sink, maxAnswerBytes, (text) =>
            new ResponseAnswer(attempt, sink).finish(readAnswerObject(text)),
          ),
      ),
  }
}
