/** Retry settings: further attempts on other workers before the first byte is sent to the client. */
import { Type } from '../contracts/type.ts'

const ONE_DAY_MS = 86_400_000

export const RetryConfigSchema = Type.Object(
  {
    maxAttempts: Type.Integer({
      minimum: 1,
      default: 5,
      description: 'Attempts per request, including the first; 1 disables retries.',
    }),
    initialBackoffMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 50,
      description: 'Delay before the second attempt, in milliseconds.',
    }),
    maxBackoffMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 30_000,
      description: 'Longest delay between attempts, in milliseconds.',
    }),
    maxWaitMs: Type.Integer({
      minimum: 0,
      maximum: ONE_DAY_MS,
      default: 1_000,
      description:
        'Longest Retry-After of a worker to wait for, in milliseconds. If it is longer, another worker is tried at once, or the client gets the response.',
    }),
    backoffMultiplier: Type.Number({
      minimum: 1,
      default: 1.5,
      description: 'Growth of the delay with each attempt.',
    }),
    jitterFactor: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.2,
      description: 'Random variation of each delay, as a share of it.',
    }),
    statuses: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), {
      default: [408, 429, 500, 502, 503, 504, 529],
      description: 'Response statuses of workers that are retried and count as failures.',
    }),
  },
  { default: {}, additionalProperties: false },
)
