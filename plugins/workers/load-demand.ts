/** Whether anybody reads what engines say about their load, so that they are asked only then. Pure. */
import type { KernelConfig, WorkerEntry } from '#kernel'

/** Policies that read load reports, as names are compared: lower case, without underscores. @source routing facts 1.1, 1.9 */
const LOAD_AWARE = new Set(['leastload', 'poweroftwo'])
const CACHE_AWARE = 'cacheaware'

type DemandConfig = Pick<KernelConfig, 'policy' | 'prefillPolicy' | 'decodePolicy' | 'policies'>

/**
 * True when a policy in use reads load reports: a default, that of one leg, or one that a worker's label names.
 * cache_aware reads them where a threshold of KV memory use is below 1.
 */
export function wantsLoads(config: DemandConfig, entries: readonly WorkerEntry[]): boolean {
  const { balanceTokenUsageThreshold, overloadTokenUsageThreshold } = config.policies.cacheAware
  const hasThreshold = balanceTokenUsageThreshold < 1 || overloadTokenUsageThreshold < 1
  const reads = (policy: string | undefined) => {
    const name = policy?.toLowerCase().replaceAll('_', '') ?? ''
    return LOAD_AWARE.has(name) || (name === CACHE_AWARE && hasThreshold)
  }
  if (reads(config.policy) || reads(config.prefillPolicy) || reads(config.decodePolicy)) return true
  return entries.some((entry) => reads(entry.labels.policy))
}
