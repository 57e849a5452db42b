/** Admission takes nothing for a request whose end has been: nobody would give it back. */
import { expect, test } from 'vitest'
import { defineValidator, type RequestContext, type RequestFacts } from '#kernel'
import { Admission } from './admission.ts'
import { BucketTable } from './bucket-table.ts'
import { limitsConfig } from './config.ts'
import { GateQueue } from './gate-queue.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import type { SchedulerMetrics } from './scheduler-metrics.ts'
import type { SchedulerQueue } from './scheduler-queue.ts'
import { SharedGate } from './shared-gate.ts'
import type { Stay } from './stay.ts'
import { TenantLimiter } from './tenant-limiter.ts'
import { Turnstile } from './turnstile.ts'

const NOW = 1_000_000_000_000n

function open() {
  const config = defineValidator(limitsConfig).parse({
    maxConcurrentRequests: 1,
    queueSize: 0,
    requestsPerSecond: 1,
    tenants: { default: { requestsPerMinute: 1 } },
  })
  const gate = new SharedGate(new SharedArrayBuffer(SharedGate.bytes(1)), 0, () => 0)
  const allowed = { count: 0, inc: () => void allowed.count++ }
  const metrics = { allowed, refused() {}, waited() {} } as unknown as LimitsMetrics
  const turnstile = new Turnstile(
    {
      gate: new GateQueue(gate, config, () => 0),
      queue: { close() {} } as SchedulerQueue,
      metrics,
      schedulerMetrics: {} as SchedulerMetrics,
    },
    config,
  )
  const stays = new Map<RequestFacts, Stay>()
  const admission = new Admission(
    {
      slot: { get: (ctx) => stays.get(ctx), set: (ctx, stay) => void stays.set(ctx, stay) },
      models: { canonical: (model) => model, served: () => null },
      rate: new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)),
      tenants: new TenantLimiter(
        new BucketTable(new SharedArrayBuffer(BucketTable.bytes(64))),
        config.tenants,
      ),
      turnstile,
      metrics,
      nowNs: () => NOW,
    },
    config,
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
])('a request that is over (%j) takes no permit, no rate and nothing of its tenant', (over) => {
  const { admission, gate, allowed } = open()
  admission.enter(request(over))
  expect([gate.use.inUse, allowed.count]).toEqual([0, 0])
  // Of each limit there is one: the next request finds all of it.
  const next = request({ isDone: false, isFailing: false })
  admission.enter(next)
  expect([gate.use.inUse, allowed.count]).toEqual([1, 1])
  admission.end(next)
  expect(gate.use.inUse).toBe(0)
})
