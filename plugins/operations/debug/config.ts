/** Configuration section of the debug plugin. */
import { Type } from '#kernel'

export const debugConfig = Type.Object(
  {
    keepRequests: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
      description: 'Maximum number of recorded requests; the oldest is deleted first.',
    }),
    keepSecs: Type.Integer({
      minimum: 1,
      default: 3_600,
      description: 'Time for which records are kept, in seconds.',
    }),
    serverTiming: Type.Union([Type.Literal('off'), Type.Literal('requested'), Type.Literal('always')], {
      default: 'requested',
      description:
        'When responses have a Server-Timing header: `off` never, `requested` for requests with `x-weir-server-timing: 1`, `always`.',
    }),
  },
  { additionalProperties: false },
)
