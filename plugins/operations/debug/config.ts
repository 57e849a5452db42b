/** The debug section of the configuration file: how much is remembered of past requests. */
import { Type } from '#kernel'

export const debugConfig = Type.Object(
  {
    keepRequests: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
      description: 'Requests that are remembered; the oldest goes first.',
    }),
    keepSecs: Type.Integer({ minimum: 1, default: 3_600, description: 'For how long, in seconds.' }),
    serverTiming: Type.Union([Type.Literal('off'), Type.Literal('asked'), Type.Literal('always')], {
      default: 'asked',
      description:
        'A Server-Timing header on replies: never, for requests with `x-weir-server-timing: 1`, or on all.',
    }),
  },
  { additionalProperties: false },
)
