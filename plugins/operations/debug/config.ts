/** Configuration section of the debug plugin. */
import { integer, Type } from '#kernel'

export const debugConfig = Type.Object(
  {
    keepRequests: integer(
      { default: 10_000, min: 1, max: 1_000_000 },
      'Maximum number of recorded requests; the oldest is deleted first.',
    ),
    keepSecs: integer({ default: 3_600, min: 1 }, 'Time for which records are kept, in seconds.'),
    serverTiming: Type.Union([Type.Literal('off'), Type.Literal('requested'), Type.Literal('always')], {
      default: 'requested',
      description:
        'When responses have a Server-Timing header: `off` never, `requested` for requests with `x-weir-server-timing: 1`, `always`.',
    }),
  },
  { additionalProperties: false },
)
