/** Settings of the responses engine plugin. */
import { type Static, Type } from '#kernel'

export const responsesEngineConfig = Type.Object(
  {
    toolTypes: Type.Union([Type.Array(Type.String({ minLength: 1 })), Type.Null()], {
      default: null,
      description:
        'Types of tools that the workers run themselves and are sent, such as web_search or custom; others are left out. Null: all.',
    }),
    maxAnswerBytes: Type.Integer({
      minimum: 1024,
      default: 67_108_864,
      description: 'Longest whole (unstreamed) answer of a worker that is read, in bytes.',
    }),
    maxEventBytes: Type.Integer({
      minimum: 1024,
      default: 67_108_864,
      description:
        'Longest single event of a streamed answer, in bytes; the last one tells the whole answer again.',
    }),
  },
  { additionalProperties: false },
)
export type ResponsesEngineConfig = Static<typeof responsesEngineConfig>
