/** What any thread may ask of control in the name of a plugin; control itself answers. */
import type { MetricsSnapshot } from '../contracts/metric-snapshot.ts'
import { defineCommand } from '../contracts/token.ts'

export interface ShutdownDemand {
  readonly plugin: string
  readonly reason: string
}

export const RequestShutdown = defineCommand<ShutdownDemand, void>('kernel.shutdown')
/** Of all threads, added up. */
export const ReadMetrics = defineCommand<null, MetricsSnapshot>('kernel.read-metrics')
