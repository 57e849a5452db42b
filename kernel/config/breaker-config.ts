/** Settings of the circuit breakers, one per worker. @source routing facts 3.2 */
import { Type } from 'typebox'

export const BreakerConfigSchema = Type.Object(
  {
    enabled: Type.Boolean({ default: true }),
    failureThreshold: Type.Integer({
      minimum: 1,
      default: 10,
      description: 'Failures in a row that open it.',
    }),
    successThreshold: Type.Integer({
      minimum: 1,
      default: 3,
      description: 'Successes in a row of a half-open breaker that close it.',
    }),
    openMs: Type.Integer({
      minimum: 1,
      default: 60_000,
      description: 'Time without any request before probes are let through, in milliseconds.',
    }),
    halfOpenProbes: Type.Integer({
      minimum: 1,
      default: 1,
      description: 'Requests at a time that a half-open breaker lets through, over all threads.',
    }),
  },
  { default: {}, additionalProperties: false },
)
