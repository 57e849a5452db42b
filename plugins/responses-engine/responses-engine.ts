/** The engine adapter of HTTP workers that take responses. @hot */
import type { EngineAdapter, EngineReader } from '#contracts'
import { isPlainEventStream } from '#kernel'
import type { ResponsesEngineConfig } from './config.ts'
import { ResponseStreamReader } from './response-stream-reader.ts'
import { toResponsesBody } from './to-responses-body.ts'
import { WholeResponseReader } from './whole-response-reader.ts'

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
    read(attempt, sink) {
      let reader: EngineReader | null = null
      return {
        onStart(headers) {
          reader = isPlainEventStream(headers)
            ? new ResponseStreamReader(attempt, sink, config.maxEventBytes)
            : new WholeResponseReader(attempt, sink, config.maxAnswerBytes)
          reader.onStart(headers)
        },
        onData: (chunk) => reader?.onData(chunk),
        onEnd: () => reader?.onEnd(),
      }
    },
  }
}
