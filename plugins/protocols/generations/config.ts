/** Settings of the generations plugin: requests to workers, and their answers. */
import { Type } from '#kernel'

export const generationsConfig = Type.Object(
  {
    maxAnswerBytes: Type.Integer({
      minimum: 1024,
      default: 67_108_864,
      description: 'Maximum size of one answer of a worker, or of one event of a streamed answer, in bytes.',
    }),
    defaultMaxTokens: Type.Integer({
      minimum: 1,
      default: 8_192,
      description:
        'max_tokens of requests to workers that speak the Messages format, which requires it, if the client sets none.',
    }),
    systemMessages: Type.Enum(['merge', 'keep'], {
      default: 'merge',
      description:
        'System messages of translated requests to engines. merge: one in front, later ones as notes in user messages, and neighbouring user messages as one, since many chat templates reject others. keep: messages are sent as they are.',
    }),
    toolImages: Type.Enum(['auto', 'send', 'note'], {
      default: 'auto',
      description:
        'Images of tool results in translated requests. auto: sent to models with the capability vision and to the services openai, anthropic and gemini; others get a note with type and size. send: always sent. note: never sent.',
    }),
    toolTypes: Type.Union([Type.Array(Type.String({ minLength: 1 })), Type.Null()], {
      default: null,
      description:
        'Types of tools, such as web_search or custom, that are sent to workers that speak the Responses format; other types are omitted. null sends all of them.',
    }),
  },
  { additionalProperties: false },
)
