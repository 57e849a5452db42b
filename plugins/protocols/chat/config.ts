/** Settings of the chat plugin. */
import { type Static, Type } from '#kernel'

export const chatConfig = Type.Object(
  {
    validate: Type.Union([Type.Literal('routing'), Type.Literal('full')], {
      default: 'routing',
      description:
        'routing: checks only what routing needs, on the bytes; the worker checks the rest. full: parses the body and checks every documented rule before the bytes are forwarded.',
    }),
    chat: Type.Union([Type.Literal('relay'), Type.Literal('normalize')], {
      default: 'relay',
      description:
        'relay: workers that take chat completions get the bytes of the request, and their response is passed on unchanged. normalize: every answer is decoded and encoded again, so that clients get the same chunks from every engine.',
    }),
    streamOpensAfterMs: Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      default: 10_000,
      description:
        'Time after which a stream opens without a byte of its worker, in milliseconds, checked each second. Heartbeats keep it open from then on (`kernel.http.heartbeatMs`), and failures have no HTTP status of their own. The gateway retries only within this time.',
    }),
    modelListMs: Type.Integer({
      minimum: 1,
      maximum: 3_600_000,
      default: 5_000,
      description: 'Timeout for the model list of an external worker, in milliseconds.',
    }),
    callerKeyHosts: Type.Array(Type.String({ minLength: 1 }), {
      default: ['api.openai.com', 'api.x.ai', 'api.anthropic.com', 'generativelanguage.googleapis.com'],
      description:
        "Hosts of external workers that get a caller's own key for GET /v1/models, over TLS only (or on this machine).",
    }),
  },
  { additionalProperties: false },
)

export type ChatConfig = Static<typeof chatConfig>
