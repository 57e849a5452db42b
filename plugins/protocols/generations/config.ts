/** Settings of the generations plugin: requests to workers, and their answers. */
import { integer, type Static, Type } from '#kernel'
import { reachSettings } from '#shared'

const fileUrlsConfig = Type.Object(
  {
    isAllowed: Type.Boolean({
      default: false,
      description:
        'Whether the gateway loads files by URL for workers that take them only as content. Text files become text, images and PDF documents become parts. If false, such a request is rejected, unless a worker of the model takes URLs.',
    }),
    ...reachSettings,
    maxBytes: integer(
      { default: 16_777_216, min: 1, max: 268_435_456 },
      'Maximum size of all files of one request, bytes.',
    ),
    timeoutMs: integer(
      { default: 15_000, min: 10, max: 600_000 },
      'Timeout for all files of one request with their redirects, milliseconds.',
    ),
    maxPerRequest: integer(
      { default: 8, min: 1, max: 1_000 },
      'Maximum number of files by URL in one request.',
    ),
    maxConcurrentPerTenant: integer(
      { default: 8, min: 1, max: 1_000 },
      'Maximum number of files of one tenant that each data thread loads at a time; more are rejected with status 429.',
    ),
  },
  { additionalProperties: false, default: {} },
)

export type FileUrlsConfig = Static<typeof fileUrlsConfig>

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
    fileUrls: fileUrlsConfig,
    toolTypes: Type.Union([Type.Array(Type.String({ minLength: 1 })), Type.Null()], {
      default: null,
      description:
        'Types of tools, such as web_search or custom, that are sent to workers that speak the Responses format; other types are omitted. null sends all of them.',
    }),
  },
  { additionalProperties: false },
)
