/** Registers each policy with its options. A new policy is one file and one entry here. */
import type { Host, PolicyFactory, PolicyOptions } from '#kernel'
import { Bucket } from './bucket.ts'
import { CacheAware, readsKvUsage } from './cache-aware.ts'
import type { PoliciesConfig } from './config.ts'
import { ConsistentHashing } from './consistent-hashing.ts'
import { LeastLoad } from './least-load.ts'
import { Manual } from './manual.ts'
import { Passthrough } from './passthrough.ts'
import type { PolicyState } from './policy-state.ts'
import { PowerOfTwo } from './power-of-two.ts'
import { PrefixHash } from './prefix-hash.ts'
import { RandomChoice } from './random.ts'
import { HASHING_HEADERS } from './sessions/routing-headers.ts'
import { SessionKeys } from './sessions/session-keys.ts'
import { StickyOverlay } from './sticky-overlay.ts'

/** Policy of a pair's legs under a policy that does not support them. */
const LEG_FALLBACK = 'least_load'

/** Listed in the manifest. */
export const POLICY_NAMES = [
  'random',
  'passthrough',
  'power_of_two',
  'least_load',
  'cache_aware',
  'bucket',
  'manual',
  'consistent_hashing',
  'prefix_hash',
] as const
type PolicyName = (typeof POLICY_NAMES)[number]

interface Registration {
  readonly make: PolicyFactory
  readonly options?: PolicyOptions
}

/**
 * @param config of this thread; most of it may change in place
 * @param state of this thread
 */
export function registerPolicies(
  host: Pick<Host, 'policy' | 'policyOverlay'>,
  config: PoliciesConfig,
  state: PolicyState,
): void {
  const keys = new SessionKeys(config.sessionKeys)
  const registrations = registrationsOf(config, state, keys)
  for (const name of POLICY_NAMES) {
    const { make, options } = registrations[name]
    host.policy(name, make, options)
  }
  if (!config.stickyRoutingKeys) return
  host.policyOverlay((policy, parts) =>
    policy.isSticky === true ? policy : new StickyOverlay(policy, new Manual(state, keys, parts), keys),
  )
}

function registrationsOf(
  config: PoliciesConfig,
  state: PolicyState,
  keys: SessionKeys,
): Record<PolicyName, Registration> {
  const { counters } = state
  const { virtualNodes } = config.consistentHashing
  return {
    random: { make: ({ random }) => new RandomChoice(random) },
    passthrough: {
      make: ({ model, log }) => new Passthrough(model, log ?? null),
      options: { instead: { prefill: LEG_FALLBACK, decode: LEG_FALLBACK } },
    },
    power_of_two: { make: ({ random }) => new PowerOfTwo(random), options: { readsLoads: true } },
    least_load: { make: () => new LeastLoad(config.leastLoad, counters), options: { readsLoads: true } },
    cache_aware: {
      make: (parts) => new CacheAware(state, parts),
      options: {
        isDefault: true,
        // The thresholds can be reloaded.
        get readsLoads() {
          return readsKvUsage(config.cacheAware)
        },
      },
    },
    bucket: { make: () => new Bucket(config.bucket), options: { instead: { decode: LEG_FALLBACK } } },
    manual: {
      make: (parts) => new Manual(state, keys, parts),
      options: { headers: keys.headers },
    },
    consistent_hashing: {
      make: (parts) => new ConsistentHashing(virtualNodes, keys, parts),
      options: { headers: [...keys.headers, ...HASHING_HEADERS] },
    },
    prefix_hash: { make: (parts) => new PrefixHash(state, parts) },
  }
}
