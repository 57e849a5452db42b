/** Admission takes nothing for a request that has ended, because nothing would release it. */
import { expect, test } from 'vitest'
import { defineValidator, type RequestContext, type RequestFacts } from '#kernel'
import { Admission } from './admission.ts'
import type { AdmissionState } from './admission-state.ts'
import { ConcurrencyLimiter } from './concurrency-limiter.ts'
import { limitsConfig } from './config.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import { PermitQueue } from './permits/permit-queue.ts'
import { SharedPermits } from './permits/shared-permits.ts'
import { BucketTable } from './rates/bucket-table.ts'
import { OwnRate } from './rates/rate-limit.ts'
import { TenantLimiter } from './rates/tenant-limiter.ts'
import type { SchedulerMetrics } from './scheduler/scheduler-metrics.ts'
import type { SchedulerQueue } from './scheduler/scheduler-queue.ts'

const NOW = 1_000_000_000_000n

function open() {
  const config = defineValidator(limitsConfig).parse({
    maxConcurrentRequests: 1,
    queueSize: 0,
    requestsPerSecond: 1,
    tenants: { default: { requestsPerMinute: 1 } },
  })
  const gate = new SharedPermits(new SharedArrayBuffer(SharedPermits.bytes(1)), 0, () => 0)
  const allowed = { count: 0, inc: () => void allowed.count++ }
  const metrics = { allowed, refused() {}, waited() {} } as unknown as LimitsMetrics
  const concurrency = new ConcurrencyLimiter(
    {
      permits: new PermitQueue(gate, config, () => 0),
      scheduler: { close() {} } as SchedulerQueue,
      metrics,
      schedulerMetrics: {} as SchedulerMetrics,
    },
    config,
  )
  const states = new Map<RequestFacts, AdmissionState>()
  const admission = new Admission(
    {
      slot: { get: (ctx) => states.get(ctx), set: (ctx, state) => void states.set(ctx, state) },
      models: { named: (_ctx, model) => [model], served: () => null },
      tenants: new TenantLimiter(
        new BucketTable(new SharedArrayBuffer(BucketTable.bytes(64))),
        config.tenants,
      ),
      concurrency,
      metrics,
      nowNs: () => NOW,
    },
    config,
    [new OwnRate(new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)), 1, 0)],
  )
  return { admission, gate, allowed }
}

const request = (state: { isDone: boolean; isFailing: boolean }) =>
  ({
    ...state,
    method: 'GET',
    identity: { tenant: 'auth:a' },
    header: () => undefined,
  }) as unknown as RequestContext

test.each([
  { isDone: true, isFailing: false },
  { isDone: false, isFailing: true },
])('a request that is over (%j) takes no permit, no rate token and nothing of its tenant', (over) => {
  const { admission, gate, allowed } = open()
  admission.enter(request(over))
  expect([gate.use.inUse, allowed.count]).toEqual([0, 0])
  // Each limit is 1, so the next request is admitted only if nothing was taken.
  const next = request({ isDone: false, isFailing: false })
  admission.enter(next)
  expect([gate.use.inUse, allowed.count]).toEqual([1, 1])
  admission.end(next)
  expect(gate.use.inUse).toBe(0)
})
