/** Settings of the circuit breakers, one per worker. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'

export const BreakerConfigSchema = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'false: no worker is held back for failing, whatever its own settings say.',
    }),
    failureThreshold: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 10,
      description: 'Failures in a row that open it.',
    }),
    successThreshold: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 3,
      description: 'Successes in a row of a half-open breaker that close it.',
    }),
    openMs: Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      default: 60_000,
      description: 'Time without any request before probes are let through, in milliseconds.',
    }),
    halfOpenProbes: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 1,
      description:
        'Requests at a time that a half-open breaker lets through, over all threads; one that runs for more than a minute makes room for another.',
    }),
    lastWorkerRequests: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 8,
      description:
        'Requests at a time, over all threads, that a worker with an open breaker gets when no other worker serves the model and each failure was an answer with a status: it is slowed, not shut.',
    }),
  },
  { default: {}, additionalProperties: false },
)

export type BreakerConfig = Static<typeof BreakerConfigSchema>
