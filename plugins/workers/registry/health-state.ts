/** The health state machine: what one probe result makes of a worker's status. Pure. */
import type { WorkerStatus } from '#kernel'

/** Probes since the last change of status. */
export interface HealthCounts {
  /** Good probes in a row. */
  readonly successes: number
  /** Bad probes in a row. */
  readonly failures: number
  /** All probes. */
  readonly probes: number
}

export interface HealthView {
  readonly status: WorkerStatus
  readonly counts: HealthCounts
}

export interface HealthThresholds {
  readonly successThreshold: number
  readonly failureThreshold: number
}

export const NO_PROBES: HealthCounts = Object.freeze({ successes: 0, failures: 0, probes: 0 })

/** Probes without readiness, as a multiple of the failure threshold, after which a new worker has failed. */
const PENDING_PROBES_FACTOR = 10
/** Bad probes in a row, as a multiple of the failure threshold, after which a worker that was ready has failed. */
const NOT_READY_FAILURES_FACTOR = 3

/**
 * Takes in one probe. Counts begin anew with each change of status; a draining worker stays what it is.
 */
export function observeProbe(view: HealthView, isGood: boolean, thresholds: HealthThresholds): HealthView {
  const { status } = view
  if (status === 'draining') return view
  const counts = {
    successes: isGood ? view.counts.successes + 1 : 0,
    failures: isGood ? 0 : view.counts.failures + 1,
    probes: view.counts.probes + 1,
  }
  const next = nextStatus(status, counts, thresholds)
  return next === status ? { status, counts } : { status: next, counts: NO_PROBES }
}

function nextStatus(
  status: 'pending' | 'ready' | 'not_ready' | 'failed',
  counts: HealthCounts,
  { successThreshold, failureThreshold }: HealthThresholds,
): WorkerStatus {
  if (status === 'ready') return counts.failures >= failureThreshold ? 'not_ready' : 'ready'
  if (counts.successes >= successThreshold) return 'ready'
  if (status === 'failed') return 'failed'
  const hasFailed =
    status === 'pending'
      ? counts.probes >= PENDING_PROBES_FACTOR * failureThreshold
      : counts.failures >= NOT_READY_FAILURES_FACTOR * failureThreshold
  return hasFailed ? 'failed' : status
}
