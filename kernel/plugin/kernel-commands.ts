/** What any thread may ask of control in the name of a plugin; control itself answers. */

import type { LoadedConfig } from '../config/loaded-config.ts'
import type { MetricsSnapshot } from '../contracts/metric-snapshot.ts'
import type { ReloadReport } from '../contracts/reload.ts'
import { defineCommand, defineReplica } from '../contracts/token.ts'

export interface ShutdownDemand {
  readonly plugin: string
  readonly reason: string
}

export const RequestShutdown = defineCommand<ShutdownDemand, void>('kernel.shutdown')
export const ReloadConfig = defineCommand<null, ReloadReport>('kernel.reload')
/** The configuration that holds since the last reload; null: that of the start. */
export const RunningConfig = defineReplica<RunningConfigState | null>('kernel.config', null)
export interface RunningConfigState {
  readonly config: LoadedConfig
  /** Plugins whose section changed. */
  readonly plugins: readonly string[]
}
/** Of all threads, added up. */
export const ReadMetrics = defineCommand<null, MetricsSnapshot>('kernel.read-metrics')
