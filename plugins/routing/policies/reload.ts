/** Settings of the policies that may change while requests go on: all but what sizes memory, rings and timers. */
import type { PoliciesConfig } from './config.ts'

/** As the manifest lists them. */
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

/** Policies read their settings where they are used, so these are changed in place. */
export function takeOn(config: PoliciesConfig, next: PoliciesConfig): void {
  for (const name of ['cacheAware', 'leastLoad', 'bucket', 'manual', 'prefixHash'] as const)
    Object.assign(config[name], next[name])
}
