/** The admission of one thread with its real parts: permits, scheduler, tenant buckets and metrics. */
import type { RequestFacts } from '#kernel'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { Admission } from '../../plugins/access/limits/admission.ts'
import { type AdmissionState, ConcurrencyLimiter } from '../../plugins/access/limits/concurrency-limiter.ts'
import type { LimitsConfig } from '../../plugins/access/limits/config.ts'
import { LimitsMetrics } from '../../plugins/access/limits/limits-metrics.ts'
import { PermitQueue } from '../../plugins/access/limits/permits/permit-queue.ts'
import { SharedPermits } from '../../plugins/access/limits/permits/shared-permits.ts'
import { BucketTable } from '../../plugins/access/limits/rates/bucket-table.ts'
import { TenantLimiter } from '../../plugins/access/limits/rates/tenant-limiter.ts'
import { MS_NS } from '../../plugins/access/limits/rates/token-bucket.ts'
import { RunningTable } from '../../plugins/access/limits/running/running-table.ts'
import { Scheduler } from '../../plugins/access/limits/scheduler/scheduler.ts'
import { SchedulerMetrics } from '../../plugins/access/limits/scheduler/scheduler-metrics.ts'
import { SchedulerQueue } from '../../plugins/access/limits/scheduler/scheduler-queue.ts'
import { schedulerRules } from '../../plugins/access/limits/scheduler/scheduler-rules.ts'
import { SharedSlots } from '../../plugins/access/limits/scheduler/shared-slots.ts'

/** @param nowMs clock of all parts, milliseconds */
export function openAdmission(
  config: LimitsConfig,
  nowMs: () => number,
  rates: ConstructorParameters<typeof Admission>[2] = [],
) {
  const gate = new SharedPermits(new SharedArrayBuffer(SharedPermits.bytes(1)), 0, nowMs)
  const slots = new SharedSlots(new SharedArrayBuffer(SharedSlots.bytes(1)), 0)
  const threadMetrics = new ThreadMetrics()
  const metrics = new LimitsMetrics({ metrics: threadMetrics })
  const schedulerMetrics = new SchedulerMetrics({ metrics: threadMetrics })
  const scheduler = new Scheduler(schedulerRules(config.scheduler, 1), slots, schedulerMetrics)
  const concurrency = new ConcurrencyLimiter(
    {
      permits: new PermitQueue(gate, config, nowMs),
      scheduler: new SchedulerQueue(scheduler, slots, nowMs),
      metrics,
      schedulerMetrics,
    },
    config,
  )
  const states = new Map<RequestFacts, AdmissionState>()
  const table = new BucketTable(new SharedArrayBuffer(BucketTable.bytes(64)))
  const tenants = new TenantLimiter(table, config.tenants)
  const admission = new Admission(
    {
      slot: { get: (ctx) => states.get(ctx), set: (ctx, state) => void states.set(ctx, state) },
      models: { named: (_ctx, model) => [model], served: () => null },
      tenants,
      running: new RunningTable(new SharedArrayBuffer(RunningTable.bytes(16, 1)), 16, 0),
      concurrency,
      metrics,
      nowNs: () => BigInt(nowMs()) * MS_NS,
    },
    config,
    rates,
  )
  return { admission, gate, metrics, tenants }
}
