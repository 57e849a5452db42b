/** Settings of the load balancing policies. */
import { type Static, type TSchema, Type } from '#kernel'

/** All members have defaults, so a policy that the file does not name is complete too. */
const settings = <P extends Record<string, TSchema>>(members: P) =>
  Type.Object(members, { default: {}, additionalProperties: false })

const CacheAware = settings({
  cacheThreshold: Type.Number({
    minimum: 0,
    maximum: 1,
    default: 0.3,
    description: 'A worker that holds more than this part of the prompt gets the request.',
  }),
  balanceAbsThreshold: Type.Integer({
    minimum: 0,
    default: 64,
    description: 'In-flight spread that, together with balanceRelThreshold, overrules the prefix.',
  }),
  balanceRelThreshold: Type.Number({
    minimum: 1,
    default: 1.5,
    description: 'Ratio of most to least in flight that, together with balanceAbsThreshold, overrules it.',
  }),
  balanceTokenUsageThreshold: Type.Number({
    exclusiveMinimum: 0,
    default: 1,
    description: 'Spread of KV memory use (0 to 1) that overrules the prefix; 1 never does.',
  }),
  overloadTokenUsageThreshold: Type.Number({
    exclusiveMinimum: 0,
    default: 1,
    description: 'KV memory use of any worker (0 to 1) that overrules the prefix; 1 never does.',
  }),
  queuedRequestTokens: Type.Integer({
    minimum: 0,
    default: 64,
    description:
      'A worker that holds part of a prompt is passed over when its requests in flight beyond those of the least loaded worker, at this many tokens each, outweigh the tokens it holds, and are more than 8; 0 never.',
  }),
  maxTreeSize: Type.Integer({
    minimum: 1,
    maximum: 1_073_741_824,
    default: 67_108_864,
    description:
      'Most prompt bytes remembered for one worker; with token ids, 4 bytes count for a token. Kept by the sweep.',
  }),
  maxBytes: Type.Integer({
    minimum: 65_536,
    maximum: 4_294_967_296,
    default: 67_108_864,
    description:
      'Memory of the prefix table that all threads share, taken as it fills: 32 bytes a block of prompt, about 1 KiB for 4 KiB of prompt. Rounded down to a power of two.',
  }),
  evictionIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 120,
    description: 'Between sweeps that bring workers back under maxTreeSize.',
  }),
})

const LeastLoad = settings({
  kvPressureWeight: Type.Number({
    minimum: 0,
    default: 0.15,
    description: 'Seconds that KV memory half full counts for; it grows without limit towards full.',
  }),
  defaultThroughput: Type.Number({
    exclusiveMinimum: 0,
    default: 2000,
    description: 'Tokens a second of an engine that reports none.',
  }),
  meanPrefillTokens: Type.Integer({
    minimum: 1,
    default: 1024,
    description: 'Tokens assumed for a prompt that the gateway has not tokenised.',
  }),
})

const Bucket = settings({
  adjustIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 5,
    description: 'Between adjustments of the size borders, and how long a request counts.',
  }),
  balanceAbsThreshold: Type.Integer({
    minimum: 0,
    default: 64,
    description: 'Spread of prompt bytes that, together with balanceRelThreshold, overrules the borders.',
  }),
  balanceRelThreshold: Type.Number({
    minimum: 1,
    default: 1.5,
    description: 'Ratio of most to fewest prompt bytes that, together with the other, overrules them.',
  }),
})

const Manual = settings({
  maxIdleSecs: Type.Integer({
    minimum: 1,
    maximum: 4_294_967_295,
    default: 14_400,
    description: 'A session without requests is forgotten after this.',
  }),
  sweepIntervalSecs: Type.Number({
    exclusiveMinimum: 0,
    maximum: 86_400,
    default: 60,
    description: 'Between sweeps that drop idle sessions.',
  }),
  assignmentMode: Type.Union([Type.Literal('random'), Type.Literal('min_load'), Type.Literal('min_group')], {
    default: 'random',
    description:
      'Worker of a new session: any, the one with fewest requests in flight, or with fewest sessions.',
  }),
  maxSessions: Type.Integer({
    minimum: 1024,
    maximum: 16_777_216,
    default: 131_072,
    description:
      'Sessions remembered, 21 bytes each, rounded up to a power of two; new ones push out those longest idle.',
  }),
})

const ConsistentHashing = settings({
  virtualNodes: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 150,
    description: 'Places of each worker on the ring; more share the keys more evenly.',
  }),
})

const PrefixHash = settings({
  prefixTokenCount: Type.Integer({
    minimum: 1,
    maximum: 16_384,
    default: 256,
    description: 'Tokens that decide; four times as many bytes of a prompt that is not tokenised.',
  }),
  loadFactor: Type.Number({
    minimum: 1,
    default: 1.25,
    description: 'A worker with more than this many times the mean in flight is passed over.',
  }),
})

export const policiesConfig = Type.Object(
  {
    stickyRoutingKeys: Type.Boolean({
      default: false,
      description:
        'Requests with header x-weir-routing-key stay with one worker, whatever the policy; manual and consistent_hashing do so anyway.',
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
