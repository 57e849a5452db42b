/** Configuration of the policies plugin, and which settings can be reloaded. */
import { type Static, type TSchema, Type } from '#kernel'

/** All members have defaults, so every section may be omitted. */
const settings = <P extends Record<string, TSchema>>(members: P) =>
  Type.Object(members, { default: {}, additionalProperties: false })

const CacheAware = settings({
  cacheThreshold: Type.Number({
    minimum: 0,
    maximum: 1,
    default: 0.3,
    description: 'Minimum cached share of the prompt for a worker to be preferred.',
  }),
  balanceAbsThreshold: Type.Integer({
    minimum: 0,
    default: 64,
    description:
      'Difference of requests in flight between workers above which, if balanceRelThreshold is exceeded too, the least loaded worker is picked.',
  }),
  balanceRelThreshold: Type.Number({
    minimum: 1,
    default: 1.5,
    description:
      'Ratio of most to fewest requests in flight above which, if balanceAbsThreshold is exceeded too, the least loaded worker is picked.',
  }),
  balanceTokenUsageThreshold: Type.Number({
    exclusiveMinimum: 0,
    default: 1,
    description:
      'Difference of KV cache use between workers (0 to 1) above which the least loaded worker is picked; 1 disables the check.',
  }),
  overloadTokenUsageThreshold: Type.Number({
    exclusiveMinimum: 0,
    default: 1,
    description:
      'KV cache use of any worker (0 to 1) above which the least loaded worker is picked; 1 disables the check.',
  }),
  queuedRequestTokens: Type.Integer({
    minimum: 0,
    default: 64,
    description:
      'Cost of a request in flight in tokens. A worker with part of the prompt cached is not preferred if its additional requests in flight, more than 8, cost more than the cached tokens; 0 disables the check.',
  }),
  maxTreeSize: Type.Integer({
    minimum: 1,
    maximum: 1_073_741_824,
    default: 67_108_864,
    description: 'Maximum prompt bytes remembered per worker (4 bytes per token id); enforced by the sweep.',
  }),
  maxBytes: Type.Integer({
    minimum: 65_536,
    maximum: 4_294_967_296,
    default: 67_108_864,
    description:
      'Size of the prefix table shared by all threads, in bytes: 32 bytes per prefix, about 1 KiB per 4 KiB of prompt. Rounded down to a power of two.',
  }),
  evictionIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 120,
    description: 'Interval of sweeps that enforce maxTreeSize, in seconds.',
  }),
})

const LeastLoad = settings({
  kvPressureWeight: Type.Number({
    minimum: 0,
    default: 0.15,
    description:
      'Seconds added to the estimated wait at 50 % KV cache use; grows towards infinity as the cache fills.',
  }),
  defaultThroughput: Type.Number({
    exclusiveMinimum: 0,
    default: 2000,
    description: 'Tokens per second of an engine that does not report its throughput.',
  }),
  meanPrefillTokens: Type.Integer({
    minimum: 1,
    default: 1024,
    description: 'Assumed tokens of a prompt that was not tokenized by the gateway.',
  }),
})

const Bucket = settings({
  adjustIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 5,
    description:
      'Interval at which the size ranges are adjusted, and time for which a request is counted, in seconds.',
  }),
  balanceAbsThreshold: Type.Integer({
    minimum: 0,
    default: 64,
    description:
      'Difference of prompt bytes between workers above which, if balanceRelThreshold is exceeded too, the least loaded worker is picked.',
  }),
  balanceRelThreshold: Type.Number({
    minimum: 1,
    default: 1.5,
    description:
      'Ratio of most to fewest prompt bytes above which, if balanceAbsThreshold is exceeded too, the least loaded worker is picked.',
  }),
})

const Manual = settings({
  maxIdleSecs: Type.Integer({
    minimum: 1,
    maximum: 4_294_967_295,
    default: 14_400,
    description: 'Idle time after which a session is deleted, in seconds.',
  }),
  sweepIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 60,
    description: 'Interval of sweeps that delete idle sessions, in seconds.',
  }),
  assignmentMode: Type.Union([Type.Literal('random'), Type.Literal('min_load'), Type.Literal('min_group')], {
    default: 'random',
    description:
      'Worker of a new session: random, fewest requests in flight (min_load), or fewest sessions (min_group).',
  }),
  maxSessions: Type.Integer({
    minimum: 1024,
    maximum: 16_777_216,
    default: 131_072,
    description:
      'Maximum number of sessions (21 bytes each), rounded up to a power of two; the session idle longest is evicted.',
  }),
})

const ConsistentHashing = settings({
  virtualNodes: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 150,
    description: 'Points of each worker on the hash ring; more points distribute keys more evenly.',
  }),
})

const PrefixHash = settings({
  prefixTokenCount: Type.Integer({
    minimum: 1,
    maximum: 16_384,
    default: 256,
    description:
      'Number of leading tokens that are hashed; four bytes per token for a prompt that was not tokenized.',
  }),
  loadFactor: Type.Number({
    minimum: 1,
    default: 1.25,
    description: 'Maximum requests in flight of the chosen worker, as a multiple of the mean.',
  }),
})

export const policiesConfig = Type.Object(
  {
    stickyRoutingKeys: Type.Boolean({
      default: false,
      description:
        'Sends all requests with the same x-weir-routing-key header to one worker, under any policy; manual and consistent_hashing always do.',
    }),
    cacheAware: CacheAware,
    leastLoad: LeastLoad,
    bucket: Bucket,
    manual: Manual,
    consistentHashing: ConsistentHashing,
    prefixHash: PrefixHash,
  },
  { additionalProperties: false },
)

export type PoliciesConfig = Static<typeof policiesConfig>

export type CacheAwareConfig = PoliciesConfig['cacheAware']
export type LeastLoadConfig = PoliciesConfig['leastLoad']
export type BucketConfig = PoliciesConfig['bucket']
export type ManualConfig = PoliciesConfig['manual']
export type PrefixHashConfig = PoliciesConfig['prefixHash']

/** Settings that can change at runtime: all except those that size memory, hash rings and timers. */
export const RELOADS = [
  'cacheAware.cacheThreshold',
  'cacheAware.balanceAbsThreshold',
  'cacheAware.balanceRelThreshold',
  'cacheAware.balanceTokenUsageThreshold',
  'cacheAware.overloadTokenUsageThreshold',
  'cacheAware.queuedRequestTokens',
  'cacheAware.maxTreeSize',
  'leastLoad',
  'bucket',
  'manual.assignmentMode',
  'manual.maxIdleSecs',
  'prefixHash',
] as const

/** Changes the settings in place, because policies keep a reference to them. */
export function applyReload(config: PoliciesConfig, next: PoliciesConfig): void {
  for (const name of ['cacheAware', 'leastLoad', 'bucket', 'manual', 'prefixHash'] as const)
    Object.assign(config[name], next[name])
}
