/** Shared dependencies of the control-side classes that change workers. */
import type { Logger, WorkerBalance, WorkerControls } from '#kernel'
import type { WorkersConfig } from './config.ts'
import type { HealthChecks } from './health-checks.ts'
import type { JobRunner } from './jobs.ts'
import type { LoadMonitor } from './load-monitor.ts'
import type { Registry } from './registry.ts'
import type { SavedWorkers } from './saved-workers.ts'

export interface ControlParts {
  readonly registry: Registry
  readonly jobs: JobRunner
  readonly checks: HealthChecks
  readonly loads: LoadMonitor
  readonly saved: SavedWorkers
  readonly balance: Pick<
    WorkerBalance,
    | 'setStatus'
    | 'status'
    | 'inFlight'
    | 'breakerState'
    | 'breakerRuns'
    | 'refusals'
    | 'misnamedAnswers'
    | 'recovered'
    | 'figures'
  >
  readonly controls: WorkerControls
  readonly config: WorkersConfig
  /** Registered and reserved together. */
  readonly maxWorkers: number
  /** Called when a worker that was reserved has become ready. */
  readonly onRegistered?: (url: string) => void
  readonly log: Logger
}

/** Time limit of a change, on top of the time it waits by design. */
export const BUDGET_MARGIN_MS = 30_000
