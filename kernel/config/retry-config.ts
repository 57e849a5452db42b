/** Retry settings: further attempts on other workers before the first byte is sent to the client. */

import { Type } from '../contracts/type.ts'
import { integer, number } from './number-settings.ts'

const ONE_DAY_MS = 86_400_000

export const RetryConfigSchema = Type.Object(
  {
    maxAttempts: integer(
      { default: 5, min: 1 },
      'Attempts per request, including the first; 1 disables retries.',
    ),
    initialBackoffMs: integer(
      { default: 50, min: 1, max: ONE_DAY_MS },
      'Delay before the second attempt, in milliseconds.',
    ),
    maxBackoffMs: integer(
      { default: 30_000, min: 1, max: ONE_DAY_MS },
      'Longest delay between attempts, in milliseconds.',
    ),
    maxWaitMs: integer(
      { default: 1_000, min: 0, max: ONE_DAY_MS },
      'Longest Retry-After of a worker to wait for, in milliseconds. If it is longer, another worker is tried at once, or the client gets the response.',
    ),
    backoffMultiplier: number({ default: 1.5, min: 1 }, 'Growth of the delay with each attempt.'),
    jitterFactor: number(
      { default: 0.2, min: 0, max: 1 },
      'Random variation of each delay, as a share of it.',
    ),
    statuses: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), {
      default: [408, 429, 500, 502, 503, 504, 529],
      description: 'Response statuses of workers that are retried and count as failures.',
    }),
  },
  { default: {}, additionalProperties: false },
)
