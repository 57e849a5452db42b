/** The chat section of the configuration file. */
import { type Static, Type } from '#kernel'

export const chatConfig = Type.Object(
  {
    validate: Type.Union([Type.Literal('routing'), Type.Literal('full')], {
      default: 'routing',
      description:
        'routing: only what routing needs is checked, on the bytes; the worker judges the rest. full: the body is parsed and every documented rule is applied before the same bytes are forwarded.',
    }),
    chat: Type.Union([Type.Literal('relay'), Type.Literal('normalize')], {
      default: 'relay',
      description:
        'relay: workers that speak chat completions get the bytes of the request, and their answer goes on untouched. normalize: every answer is read and encoded again, so that clients see the same chunks from every engine.',
    }),
    modelListMs: Type.Integer({
      minimum: 1,
      maximum: 3_600_000,
      default: 5_000,
      description: 'Time for an external worker to list its models, in milliseconds.',
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
