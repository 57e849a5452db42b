/** Settings of the messages engine plugin. */
import { type Static, Type } from '#kernel'

export const messagesEngineConfig = Type.Object(
  {
    defaultMaxTokens: Type.Integer({
      minimum: 1,
      default: 8_192,
      description: 'Tokens of output where the client sets no limit, which the format demands.',
    }),
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
export type MessagesEngineConfig = Static<typeof messagesEngineConfig>
