/** Work that calls share, and periodic work in batches. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CoalescedWork, PeriodicBatches } from './async-work.ts'

test('calls during a run share one further run, which begins when the first has ended', async () => {
  const runs: PromiseWithResolvers<void>[] = []
  const work = new CoalescedWork(() => {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    return run.promise
  })
  const first = work.run()
  await Promise.resolve()
  expect(runs).toHaveLength(1)
  const second = work.run()
  expect(work.run()).toBe(second)
  await Promise.resolve()
  expect(runs).toHaveLength(1)
  const idle = work.idle()
  runs[0].resolve()
  await Promise.all([first, idle])
  await vi.waitFor(() => expect(runs).toHaveLength(2))
  runs[1].resolve()
  await second
  expect(runs).toHaveLength(2)
})

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
})

function makeLog() {
  const warnings: string[] = []
  return { warnings, log: { warn: (_: object, text: string) => warnings.push(text) } as never }
}

test('slices run one after another while there is more, then pause', async () => {
  const counts: number[] = []
  const left = [3, 2, 1, 0]
  const act = async (limit: number) => {
    const more = (left.shift() ?? 0) > 0
    counts.push(more ? limit : 0)
    return more ? limit : 0
  }
  const { log } = makeLog()
  const work = new PeriodicBatches(act, 60_000, log, 'x')
  work.start()
  work.start()
  await vi.advanceTimersByTimeAsync(59_999)
  expect(counts).toHaveLength(0)
  await vi.advanceTimersByTimeAsync(100)
  expect(counts).toHaveLength(4)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(counts).toHaveLength(5)
  await work.stop()
})

test('a failed slice is logged and retried; stopping waits for the running one', async () => {
  let calls = 0
  const slice = Promise.withResolvers<number>()
  const act = () => (++calls === 1 ? Promise.reject(new Error('gone')) : slice.promise)
  const { warnings, log } = makeLog()
  const work = new PeriodicBatches(act, 1_000, log, 'old things could not be removed')
  work.start()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(warnings).toEqual(['old things could not be removed'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(calls).toBe(2)
  let isStopped = false
  const stopped = work.stop().then(() => {
    isStopped = true
  })
  await vi.advanceTimersByTimeAsync(1)
  expect(isStopped).toBe(false)
  slice.resolve(0)
  await stopped
  await vi.advanceTimersByTimeAsync(10_000)
  expect(calls).toBe(2)
  work.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(calls).toBe(2)
})
