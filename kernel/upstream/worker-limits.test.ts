import { expect, test } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { WorkerLimits } from './worker-limits.ts'

const KERNEL = { connectMs: 10, headMs: 40, firstTokenMs: 20, idleMs: 30, requestMs: 1_000, models: {} }
const limits = new WorkerLimits(KERNEL)
const plain = workerEntry({ slot: 0 })
const own = (requestMs: number) => workerEntry({ slot: 1, httpPool: { requestMs } })

test('a whole response is limited until its head, a stream until its first token', () => {
  const both = { connectMs: 10, idleMs: 30, requestMs: 1_000 }
  expect(limits.of(plain, 'm', false)).toEqual({ ...both, headMs: 40, firstTokenMs: 0 })
  expect(limits.of(plain, 'm', true)).toEqual({ ...both, headMs: 0, firstTokenMs: 20 })
})

test("a worker's own timeouts override those of the model, and these the kernel's; the rest is kept", () => {
  const models = { slow: { headMs: 400, firstTokenMs: 200 } }
  const byModel = new WorkerLimits({ ...KERNEL, models })
  const worker = workerEntry({ slot: 1, httpPool: { connectMs: 1, firstTokenMs: 3, requestMs: 2 } })
  expect(byModel.of(plain, 'slow', true).firstTokenMs).toBe(200)
  expect(byModel.of(plain, 'other', true).firstTokenMs).toBe(20)
  expect(byModel.of(worker, 'slow', true)).toMatchObject({ connectMs: 1, firstTokenMs: 3, requestMs: 2 })
  expect(byModel.of(worker, 'slow', false)).toMatchObject({ headMs: 400, idleMs: 30 })
  expect(byModel.of(worker, 'slow', true)).toBe(byModel.of(worker, 'slow', true))
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
  expect(limits.after(worker, 'm', false, usedMs).requestMs).toBe(expected)
})

test('without a timeout in the kernel, each attempt has its own', () => {
  const endless = new WorkerLimits({ ...KERNEL, requestMs: 0 })
  expect([endless.totalMs(null), endless.totalMs(own(300))]).toEqual([0, 0])
  expect(endless.after(own(300), 'm', true, 5_000).requestMs).toBe(300)
})
