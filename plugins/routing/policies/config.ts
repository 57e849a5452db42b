/** Configuration of the policies plugin, and which settings can be reloaded. */
import { integer, number, type Static, type TSchema, Type } from '#kernel'
import { DEFAULT_SESSION_KEYS } from './sessions/session-keys.ts'

/** All members have defaults, so every section may be omitted. */
const settings = <P extends Record<string, TSchema>>(members: P) =>
  Type.Object(members, { default: {}, additionalProperties: false })

const CacheAware = settings({
  cacheThreshold: number(
    { default: 0.3, min: 0, max: 1 },
    'Minimum cached share of the prompt for a worker to be preferred.',
  ),
  balanceAbsThreshold: integer(
    { default: 64, min: 0 },
    'Difference of requests in flight between workers above which, if balanceRelThreshold is exceeded too, the least loaded worker is picked.',
  ),
  balanceRelThreshold: number(
    { default: 1.5, min: 1 },
    'Ratio of most to fewest requests in flight above which, if balanceAbsThreshold is exceeded too, the least loaded worker is picked.',
  ),
  balanceTokenUsageThreshold: number(
    { default: 1, above: 0 },
    'Difference of KV cache use between workers (0 to 1) above which the least loaded worker is picked; 1 disables the check.',
  ),
  overloadTokenUsageThreshold: number(
    { default: 1, above: 0 },
    'KV cache use of any worker (0 to 1) above which the least loaded worker is picked; 1 disables the check.',
  ),
  queuedRequestTokens: integer(
    { default: 64, min: 0 },
    'Cost of a request in flight in tokens. A worker with part of the prompt cached is not preferred if its additional requests in flight, more than 8, cost more than the cached tokens; 0 disables the check.',
  ),
  maxTreeSize: integer(
    { default: 67_108_864, min: 1, max: 1_073_741_824 },
    'Maximum prompt bytes remembered per worker (4 bytes per token id); enforced by the sweep.',
  ),
  maxBytes: integer(
    { default: 67_108_864, min: 65_536, max: 4_294_967_296 },
    'Size of the prefix table shared by all threads, in bytes: 32 bytes per prefix, about 1 KiB per 4 KiB of prompt. Rounded down to a power of two.',
  ),
  evictionIntervalSecs: number(
    { default: 120, above: 0, max: 86_400 },
    'Interval of sweeps that enforce maxTreeSize, in seconds.',
  ),
})

const LeastLoad = settings({
  kvPressureWeight: number(
    { default: 0.15, min: 0 },
    'Seconds added to the estimated wait at 50 % KV cache use; grows towards infinity as the cache fills.',
  ),
  defaultThroughput: number(
    { default: 2000, above: 0 },
    'Tokens per second of an engine that does not report its throughput.',
  ),
  meanPrefillTokens: integer(
    { default: 1024, min: 1 },
    'Assumed tokens of a prompt that was not tokenized by the gateway.',
  ),
})

const Bucket = settings({
  adjustIntervalSecs: number(
    { default: 5, above: 0, max: 86_400 },
    'Interval at which the size ranges are adjusted, and time for which a request is counted, in seconds.',
  ),
  balanceAbsThreshold: integer(
    { default: 64, min: 0 },
    'Difference of prompt bytes between workers above which, if balanceRelThreshold is exceeded too, the least loaded worker is picked.',
  ),
  balanceRelThreshold: number(
    { default: 1.5, min: 1 },
    'Ratio of most to fewest prompt bytes above which, if balanceAbsThreshold is exceeded too, the least loaded worker is picked.',
  ),
})

const Manual = settings({
  maxIdleSecs: integer(
    { default: 14_400, min: 1, max: 4_294_967_295 },
    'Idle time after which a session is deleted, in seconds.',
  ),
  sweepIntervalSecs: number(
    { default: 60, above: 0, max: 86_400 },
    'Interval of sweeps that delete idle sessions, in seconds.',
  ),
  assignmentMode: Type.Union([Type.Literal('random'), Type.Literal('min_load'), Type.Literal('min_group')], {
    default: 'random',
    description:
      'Worker of a new session: random by the hash of its key, so that all gateways choose the same one; fewest requests in flight (min_load), or fewest sessions (min_group).',
  }),
  maxSessions: integer(
    { default: 131_072, min: 1024, max: 16_777_216 },
    'Maximum number of sessions (21 bytes each), rounded up to a power of two; the session idle longest is evicted.',
  ),
})

const ConsistentHashing = settings({
  virtualNodes: integer(
    { default: 150, min: 1, max: 1000 },
    'Points of each worker on the hash ring; more points distribute keys more evenly.',
  ),
})

const PrefixHash = settings({
  prefixTokenCount: integer(
    { default: 256, min: 1, max: 16_384 },
    'Number of leading tokens that are hashed; four bytes per token for a prompt that was not tokenized.',
  ),
  loadFactor: number(
    { default: 1.25, min: 1 },
    'Maximum requests in flight of the chosen worker, as a multiple of the mean.',
  ),
})

export const policiesConfig = Type.Object(
  {
    stickyRoutingKeys: Type.Boolean({
      default: false,
      description:
        'Sends all requests of a session (sessionKeys) to one worker, under any policy; manual and consistent_hashing always do.',
    }),
    sessionKeys: Type.Array(Type.String({ pattern: '^(header:[a-z0-9_-]+|body:.+)$' }), {
      default: [...DEFAULT_SESSION_KEYS],
      minItems: 1,
      description:
        'What identifies the session of a request: `header:<lower-case name>` and `body:<top-level member>`; the first one with a value counts.',
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
