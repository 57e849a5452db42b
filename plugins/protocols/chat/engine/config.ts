/** Settings of the chat engine plugin. */
import { type Static, Type } from '#kernel'

export const chatEngineConfig = Type.Object(
  {
    maxAnswerBytes: Type.Integer({
      minimum: 1024,
      default: 67_108_864,
      description: 'Longest whole (unstreamed) answer of a worker that is read, in bytes.',
    }),
    maxEventBytes: Type.Integer({
      minimum: 1024,
      default: 16_777_216,
      description: 'Longest single event of a streamed answer, in bytes.',
    }),
  },
  { additionalProperties: false },
)
export type ChatEngineConfig = Static<typeof chatEngineConfig>
