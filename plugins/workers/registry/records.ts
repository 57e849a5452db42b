/** Worker records as the routes return them. Built member by member, so that no secret can leak. */
import type { DataParallelRank, WorkerBalance, WorkerControl, WorkerEntry, WorkerFigures } from '#kernel'
import type { WorkersConfig } from './config.ts'
import type { JobStatus } from './jobs.ts'
import type { EngineView, WorkerRecord, WorkerTraffic } from './wire.ts'
import type { Worker } from './worker.ts'
import {
  effectiveHealth,
  type HealthSettings,
  type Reservation,
  toDescribeTarget,
  type WorkerSpec,
} from './worker-spec.ts'
import { schemeOf } from './worker-url.ts'

type Live = Pick<WorkerBalance, 'status' | 'inFlight' | 'breakerState' | 'figures'>

/** What control knows of a worker beside its entry and the shared counters. */
export interface Known {
  readonly job?: JobStatus
  readonly problem?: string | null
  readonly engine?: EngineView | null
}

export function toRecord(
  worker: Worker,
  live: Live,
  { job, problem = null, engine = null }: Known = {},
): WorkerRecord {
  const { entry, spec, findings } = worker
  const status = live.status(entry.slot)
  return {
    ...describedMembers(entry, spec, worker.health),
    ...(entry.provider !== null && { provider: entry.provider }),
    ...spec.carried,
    ...(entry.apis.length > 0 && { apis: [...entry.apis] }),
    ...toRankWire(entry.dataParallel),
    is_healthy: status === 'ready',
    status,
    ...(problem !== null && { status_reason: problem }),
    ...(findings.warnings !== undefined && { warnings: [...findings.warnings] }),
    load: live.inFlight(entry.slot),
    ...(engine !== null && { engine }),
    breaker: live.breakerState(entry.slot),
    traffic: toTrafficWire(live.figures(entry.slot)),
    ...(job !== undefined && { job_status: toJobStatusWire(job, spec.url) }),
  }
}

/** Record of a worker whose registration is unfinished or failed. @param control null if no plugin supports its scheme */
export function toPendingRecord(
  reservation: Reservation,
  config: WorkersConfig,
  job: JobStatus | undefined,
  control: Pick<WorkerControl, 'mode' | 'isExternal'> | null,
): WorkerRecord {
  const { id, spec, origin } = reservation
  const isExternal = control?.isExternal(toDescribeTarget(spec, origin)) ?? false
  const connectionMode = control?.mode ?? schemeOf(spec.url)
  const described = { ...spec, id, models: spec.models ?? [], connectionMode }
  return {
    ...describedMembers(described, spec, effectiveHealth(spec.health, config, isExternal)),
    ...spec.carried,
    is_healthy: false,
    status: 'pending',
    load: 0,
    ...(job !== undefined && { job_status: toJobStatusWire(job, spec.url) }),
  }
}

type Described = Pick<
  WorkerEntry,
  'id' | 'models' | 'url' | 'workerType' | 'connectionMode' | 'runtimeType' | 'labels' | 'priority' | 'cost'
>

/** Members that registered workers and unfinished registrations have. */
function describedMembers(
  worker: Described,
  { isDrained, maxConnectionAttempts }: WorkerSpec,
  health: HealthSettings,
) {
  const { id, models, url, labels, priority, cost } = worker
  return {
    id,
    ...(models.length > 0 && { model_id: models[0].id, models }),
    url,
    worker_type: worker.workerType,
    connection_mode: worker.connectionMode,
    runtime_type: worker.runtimeType,
    ...(Object.keys(labels).length > 0 && { labels: { ...labels } }),
    priority,
    cost,
    ...(isDrained && { drained: true }),
    max_connection_attempts: maxConnectionAttempts,
    health: toHealthWire(health),
  }
}

function toHealthWire(health: HealthSettings): WorkerRecord['health'] {
  return {
    timeout_secs: health.timeoutSecs,
    check_interval_secs: health.intervalSecs,
    success_threshold: health.successThreshold,
    failure_threshold: health.failureThreshold,
    disable_health_check: health.isDisabled,
    drain_settle_secs: health.drainSettleSecs,
  }
}

function toTrafficWire(figures: WorkerFigures): WorkerTraffic {
  const { attempts, failures, failureShare, isStalled, durationMs, firstByteMs, lastError } = figures
  return {
    requests: attempts,
    failures,
    failure_share: Math.round(failureShare * 1000) / 1000,
    is_stalled: isStalled,
    duration_ms: durationMs,
    ttft_ms: firstByteMs,
    last_error: lastError?.text ?? null,
    last_error_at: lastError === null ? null : Math.floor(lastError.atMs / 1000),
  }
}

function toRankWire(rank: DataParallelRank | null): Partial<WorkerRecord> {
  return rank === null ? {} : { dp_base_url: rank.baseUrl, dp_rank: rank.rank, dp_size: rank.size }
}

function toJobStatusWire(job: JobStatus, url: string): NonNullable<WorkerRecord['job_status']> {
  return {
    job_type: job.kind,
    worker_url: url,
    status: job.state,
    message: job.message,
    timestamp: job.atSec,
  }
}
