import { expect, test } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { WorkerLimits } from './call-parts.ts'

const KERNEL = { connectMs: 10, firstByteMs: 20, idleMs: 30, requestMs: 1_000 }
const limits = new WorkerLimits(KERNEL)
const plain = workerEntry({ slot: 0 })
const own = (requestMs: number) => workerEntry({ slot: 1, httpPool: { requestMs } })

test("a worker's own timeouts override the kernel's, the rest is kept", () => {
  expect(limits.of(plain)).toEqual(KERNEL)
  const worker = workerEntry({ slot: 1, httpPool: { connectMs: 1, requestMs: 2 } })
  expect(limits.of(worker)).toEqual({ connectMs: 1, firstByteMs: 20, idleMs: 30, requestMs: 2 })
  expect(limits.of(worker)).toBe(limits.of(worker))
})

test.each([
  ['the first attempt', plain, 0, 1_000],
  ['a later one', plain, 400, 600],
  ['one that is too late', plain, 5_000, 1],
  ['a worker that may take longer', own(3_000), 400, 2_600],
  ['a worker that must be quicker', own(300), 400, 300],
  ['a worker that must be quicker, at the end', own(300), 900, 100],
  ['a worker without a limit', own(0), 5_000, 0],
])('%s has what is left of the time for all', (_which, worker, usedMs, expected) => {
  expect(limits.after(worker, usedMs).requestMs).toBe(expected)
})

test('without a timeout in the kernel, each attempt has its own', () => {
  const endless = new WorkerLimits({ ...KERNEL, requestMs: 0 })
  expect([endless.totalMs(null), endless.totalMs(own(300))]).toEqual([0, 0])
  expect(endless.after(own(300), 5_000).requestMs).toBe(300)
})
