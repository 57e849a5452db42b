/** The proxy section of the configuration file. */
import { type Static, Type } from '#kernel'

export const proxyConfig = Type.Object(
  {
    validate: Type.Union([Type.Literal('routing'), Type.Literal('full')], {
      default: 'routing',
      description:
        'routing: only what routing needs is checked, on the bytes; the worker judges the rest. full: the body is parsed and every documented rule is applied before the same bytes are forwarded.',
    }),
    modelListMs: Type.Integer({
      minimum: 1,
      maximum: 3_600_000,
      default: 5_000,
      description: 'Time for an external worker to list its models, in milliseconds.',
    }),
  },
  { additionalProperties: false },
)

export type ProxyConfig = Static<typeof proxyConfig>
