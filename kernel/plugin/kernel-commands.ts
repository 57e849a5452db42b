/** Commands of plugins that control itself handles, and the replica of the running configuration. */
import type { LoadedConfig } from '../config/loaded-config.ts'
import type { MetricsSnapshot } from '../contracts/metric.ts'
import type { ReloadPlan, ReloadReport, ShownConfig } from '../contracts/reload.ts'
import { defineCommand, defineReplica } from '../contracts/token.ts'
import { defineErrors } from '../errors/define-errors.ts'

export interface ShutdownDemand {
  readonly plugin: string
  readonly reason: string
}

export const RequestShutdown = defineCommand<ShutdownDemand, void>('kernel.shutdown')
export const ReloadConfig = defineCommand<null, ReloadReport>('kernel.reload')
/** Plans a reload of the text, or of the configuration file if it is null. */
export const PlanReload = defineCommand<string | null, ReloadPlan>('kernel.plan-reload')
/** The configuration since the last reload; null before the first reload. */
export const RunningConfig = defineReplica<RunningConfigState | null>('kernel.config', null)
export interface RunningConfigState {
  readonly config: LoadedConfig
  /** Plugins whose section changed. */
  readonly plugins: readonly string[]
}
/** Digests of the sections of the running configuration, by the key in base64. */
export const ReadConfigDigests = defineCommand<string, Readonly<Record<string, string>>>(
  'kernel.config-digests',
)
/** @throws reload_unavailable */
export const ShowConfig = defineCommand<null, ShownConfig>('kernel.show-config')
/** Sums over all threads, of the named families or all. */
export const ReadMetrics = defineCommand<readonly string[] | null, MetricsSnapshot>('kernel.read-metrics')

export const reloadErrors = defineErrors('reload', {
  reload_unavailable: {
    kind: 'conflict',
    source: 'gateway',
    text: () => 'this gateway was started without a configuration source and cannot reload',
  },
  invalid_configuration: {
    kind: 'bad_request',
    source: 'client',
    text: (problems: string) => `the configuration was not applied: ${problems}`,
  },
  invalid_plan: {
    kind: 'bad_request',
    source: 'client',
    text: (problems: string) => `the configuration is not valid: ${problems}`,
  },
})
