/** Settings of retries: further attempts on other workers, before the client has seen a byte. */
import { Type } from '../contracts/type.ts'

const ONE_DAY_MS = 86_400_000

export const RetryConfigSchema = Type.Object(
  {
    maxAttempts: Type.Integer({
      minimum: 1,
      default: 5,
      description: 'Attempts in all, the first included; 1 switches retries off.',
    }),
    initialBackoffMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 50,
      description: 'Wait before the second attempt.',
    }),
    maxBackoffMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 30_000,
      description: 'Longest wait.',
    }),
    maxWaitMs: Type.Integer({
      minimum: 0,
      maximum: ONE_DAY_MS,
      default: 1_000,
      description:
        'Longest Retry-After of a worker that is waited for; when it asks for more, another worker is tried at once, or the client gets the response.',
    }),
    backoffMultiplier: Type.Number({ minimum: 1, default: 1.5, description: 'Growth from wait to wait.' }),
    jitterFactor: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.2,
      description: 'Each wait varies by up to this share, both ways.',
    }),
    statuses: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), {
      default: [408, 429, 500, 502, 503, 504, 529],
      description: 'Statuses of workers that are tried again and count as failures.',
    }),
  },
  { default: {}, additionalProperties: false },
)
