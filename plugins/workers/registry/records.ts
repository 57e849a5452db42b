/** Worker records as the routes return them. Built member by member, so that no secret can leak. */
import type { DataParallelRank, WorkerBalance, WorkerControl, WorkerFigures } from '#kernel'
import type { WorkersConfig } from './config.ts'
import type { JobStatus } from './jobs.ts'
import type { WorkerList, WorkerRecord, WorkerTraffic } from './wire.ts'
import type { Worker } from './worker.ts'
import { effectiveHealth, type HealthSettings, type Reservation, toDescribeTarget } from './worker-spec.ts'
import { schemeOf } from './worker-url.ts'

type Live = Pick<WorkerBalance, 'status' | 'inFlight' | 'breakerState' | 'figures'>

export function toRecord(worker: Worker, live: Live, job?: JobStatus): WorkerRecord {
  const { entry, spec } = worker
  const status = live.status(entry.slot)
  return {
    id: worker.id,
    ...(entry.models.length > 0 && { model_id: entry.models[0].id, models: entry.models }),
    url: entry.url,
    worker_type: entry.workerType,
    connection_mode: entry.connectionMode,
    runtime_type: entry.runtimeType,
    ...(Object.keys(entry.labels).length > 0 && { labels: { ...entry.labels } }),
    priority: entry.priority,
    cost: entry.cost,
    max_connection_attempts: spec.maxConnectionAttempts,
    health: toHealthWire(worker.health),
    ...(entry.provider !== null && { provider: entry.provider }),
    ...spec.carried,
    ...toRankWire(entry.dataParallel),
    is_healthy: status === 'ready',
    status,
    load: live.inFlight(entry.slot),
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
  const models = spec.models ?? []
  return {
    id,
    ...(models.length > 0 && { model_id: models[0].id, models }),
    url: spec.url,
    worker_type: spec.workerType,
    connection_mode: control?.mode ?? schemeOf(spec.url),
    runtime_type: spec.runtimeType,
    ...(Object.keys(spec.labels).length > 0 && { labels: { ...spec.labels } }),
    priority: spec.priority,
    cost: spec.cost,
    max_connection_attempts: spec.maxConnectionAttempts,
    health: toHealthWire(effectiveHealth(spec.health, config, isExternal)),
    ...spec.carried,
    is_healthy: false,
    status: 'pending',
    load: 0,
    ...(job !== undefined && { job_status: toJobStatusWire(job, spec.url) }),
  }
}

/** @param pending unfinished registrations, listed last */
export function toList(
  workers: readonly Worker[],
  live: Live,
  pending: readonly WorkerRecord[] = [],
): WorkerList {
  const records = [...workers.map((worker) => toRecord(worker, live)), ...pending]
  const ofType = (type: string) => records.filter((record) => record.worker_type === type).length
  return {
    workers: records,
    total: records.length,
    stats: {
      prefill_count: ofType('prefill'),
      decode_count: ofType('decode'),
      regular_count: ofType('regular'),
    },
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
