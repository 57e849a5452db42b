/** Settings of the circuit breakers, one per worker. */

import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'
import { integer, MAX_TIMER_MS, number } from './number-settings.ts'

export const BreakerConfigSchema = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'false disables every circuit breaker, whatever the settings of a worker are.',
    }),
    failureThreshold: integer(
      { default: 10, min: 1, max: 65_535 },
      'Consecutive failures that open the breaker.',
    ),
    successThreshold: integer(
      { default: 3, min: 1, max: 65_535 },
      'Consecutive successes that close a half-open breaker.',
    ),
    openMs: integer(
      { default: 60_000, min: 1, max: MAX_TIMER_MS },
      'Time for which an open breaker admits no request, in milliseconds.',
    ),
    halfOpenProbes: integer(
      { default: 1, min: 1, max: 65_535 },
      'Concurrent requests that a half-open breaker admits, over all threads; a request that runs for more than a minute does not count.',
    ),
    lastWorkerRequests: integer(
      { default: 8, min: 1, max: 65_535 },
      'Concurrent requests, over all threads, for a worker with an open breaker if no other worker is available for the model and every failure was a response with a status.',
    ),
    maxOutlierShare: number(
      { default: 0.5, min: 0, max: 1 },
      'Largest share of the available workers of a model that picks leave out because they fail more of their recent requests than the others, or have stalled; 0 disables it. An outlier still gets a request every 5 s.',
    ),
    stallMs: integer(
      { default: 20_000, min: 0, max: MAX_TIMER_MS },
      'A worker with a stream that has received no byte for this long, and no stream that has, gets no further requests while other workers are available, in milliseconds. 0 disables it.',
    ),
  },
  { default: {}, additionalProperties: false },
)

export type BreakerConfig = Static<typeof BreakerConfigSchema>
