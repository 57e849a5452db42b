/** Settings of the circuit breakers, one per worker. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'

export const BreakerConfigSchema = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'false disables every circuit breaker, whatever the settings of a worker are.',
    }),
    failureThreshold: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 10,
      description: 'Consecutive failures that open the breaker.',
    }),
    successThreshold: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 3,
      description: 'Consecutive successes that close a half-open breaker.',
    }),
    openMs: Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      default: 60_000,
      description: 'Time for which an open breaker admits no request, in milliseconds.',
    }),
    halfOpenProbes: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 1,
      description:
        'Concurrent requests that a half-open breaker admits, over all threads; a request that runs for more than a minute does not count.',
    }),
    lastWorkerRequests: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 8,
      description:
        'Concurrent requests, over all threads, for a worker with an open breaker if no other worker is available for the model and every failure was a response with a status.',
    }),
  },
  { default: {}, additionalProperties: false },
)

export type BreakerConfig = Static<typeof BreakerConfigSchema>
