import { expect, test, vi } from 'vitest'
import { CoalescedWork } from './coalesced-work.ts'

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
