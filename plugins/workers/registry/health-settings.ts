/** How one worker's health is checked: the gateway's defaults under the worker's own values. */
import type { WorkersConfig } from './config.ts'

export interface HealthSettings {
  /** Per probe, seconds. */
  readonly timeoutSecs: number
  /** Between probes, seconds. */
  readonly intervalSecs: number
  /** Consecutive good probes to become ready. */
  readonly successThreshold: number
  /** Consecutive bad probes to become not_ready. */
  readonly failureThreshold: number
  /** No probing; the worker counts as ready. */
  readonly isDisabled: boolean
  /** How long a deleted worker stays listed for its running requests, seconds. */
  readonly drainSettleSecs: number
}

/** Values of one worker that differ from the gateway's. */
export type HealthOverrides = Partial<HealthSettings>

/** @param isExternal cloud services have no health route, so they are not checked unless the worker asks for it */
export function effectiveHealth(
  overrides: HealthOverrides,
  config: WorkersConfig,
  isExternal: boolean,
): HealthSettings {
  const defaults = config.health
  return {
    timeoutSecs: overrides.timeoutSecs ?? defaults.timeout_secs,
    intervalSecs: overrides.intervalSecs ?? defaults.check_interval_secs,
    successThreshold: Math.max(1, overrides.successThreshold ?? defaults.success_threshold),
    failureThreshold: Math.max(1, overrides.failureThreshold ?? defaults.failure_threshold),
    isDisabled: overrides.isDisabled ?? (isExternal || defaults.disable_health_check),
    drainSettleSecs: overrides.drainSettleSecs ?? defaults.drain_settle_secs,
  }
}
