/** Admission takes nothing for a request that has ended, because nothing would release it. */
import { expect, test } from 'vitest'
import { defineValidator, type RequestContext } from '#kernel'
import { openAdmission } from '../../../test/support/admission-parts.ts'
import { limitsConfig } from './config.ts'
import { RateLimit } from './rates/rate-limit.ts'

const NOW_MS = 1_000_000

function open() {
  const config = defineValidator(limitsConfig).parse({
    maxConcurrentRequests: 1,
    queueSize: 0,
    requestsPerSecond: 1,
    tenants: { default: { requestsPerMinute: 1 } },
  })
  const bucket = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
  const parts = openAdmission(config, () => NOW_MS, [new RateLimit(bucket, 1, 0)])
  return { ...parts, allowed: parts.metrics.allowed }
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
  expect([gate.use.inUse, allowed.value]).toEqual([0, 0])
  // Each limit is 1, so the next request is admitted only if nothing was taken.
  const next = request({ isDone: false, isFailing: false })
  admission.enter(next)
  expect([gate.use.inUse, allowed.value]).toEqual([1, 1])
  admission.end(next)
  expect(gate.use.inUse).toBe(0)
})
