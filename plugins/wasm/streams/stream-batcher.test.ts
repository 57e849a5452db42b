/** Batching of stream events: state changes during the wait apply. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { RequestContext } from '#kernel'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { GuestPool, TaskEnd, TaskRequest } from '../threads/guest-pool.ts'
import type { LoadedModule, StreamItem, StreamItemResult, StreamTask } from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import { StreamBatcher } from './stream-batcher.ts'
import type { StreamWork } from './stream-work.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setImmediate', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const module = (uuid: string, onFailure: 'open' | 'closed' = 'open') =>
  ({ uuid, onFailure, timeoutMs: 1_000 }) as LoadedModule
const work = (...modules: LoadedModule[]): StreamWork => ({
  modules,
  states: modules.map(() => ''),
  prefixes: modules.map(() => ''),
  requestId: 'r',
  tenant: null,
  firstIndex: 0,
  events: [{ name: null, data: 'x' }],
  isEnd: false,
  origin: { isDone: false } as RequestContext,
})
const UNTOUCHED = [{ source: 0, written: null }]
const turn = () => vi.advanceTimersByTimeAsync(0)

/** A pool that responds when the test requests it; each item lists the modules that were called. */
class StubPool {
  isStarting = false
  states: readonly string[] = []
  readonly tasks: { items: readonly string[]; end: (end: TaskEnd) => void }[] = []

  run({ draft }: TaskRequest): Promise<TaskEnd> {
    const { items, chain } = draft().task as StreamTask
    const called = ({ modules }: StreamItem) => modules.map((place) => chain[place]).join()
    this.states = items[0].states
    return new Promise((end) => this.tasks.push({ items: items.map(called), end }))
  }

  /** Completes the oldest task, or its first `count` items. */
  answer(count?: number): void {
    const task = this.tasks.shift()
    const items = (task?.items ?? []).slice(0, count).map(
      (called): StreamItemResult => ({
        out: [{ source: 0, written: { name: null, data: called } }],
        states: called.split(','),
        failedClosed: -1,
        pause: null,
      }),
    )
    task?.end({ kind: 'result', result: { kind: 'stream', items, reports: [] } })
  }
}

function open(point: 'OnStreamEvent' | 'OnText' = 'OnStreamEvent') {
  const pool = new StubPool()
  const suspended = new Set<LoadedModule>()
  const skipped: string[] = []
  const statistics = {
    isSuspended: (one: LoadedModule) => suspended.has(one),
    skip: (one: LoadedModule, reason: string) => skipped.push(`${one.uuid} ${reason}`),
    lost: () => {},
  } as unknown as CallStatistics
  const inline = { stream: () => null } as unknown as InlineGuests
  const fetches = {
    limits: { maxPerCall: 4, timeoutMs: 1_000 },
    fetched: () => Promise.reject(new Error('unexpected')),
  }
  const parts = { inline, statistics, fetches, threads: 1, notices: null, steps: undefined, point }
  const batcher = new StreamBatcher({ ...parts, pool: pool as unknown as GuestPool })
  return { pool, suspended, skipped, batcher }
}

test('a module suspended while events wait is skipped, and the skip is reported', async () => {
  const { pool, suspended, skipped, batcher } = open()
  const [a, b, c] = [module('a'), module('b'), module('c', 'closed')]
  const first = batcher.run(work(a))
  await turn()
  const waiting = [
    batcher.run(work(a, b)),
    batcher.run(work(a)),
    batcher.run(work(c, a)),
    batcher.run(work(b)),
  ]
  suspended.add(a).add(c)
  pool.answer()
  await first
  await turn()
  expect(pool.tasks.map(({ items }) => items)).toEqual([['b', 'b']])
  pool.answer()
  const ends = await Promise.all(waiting)
  expect(ends[1]).toEqual(UNTOUCHED)
  expect(ends[2]).toBeNull()
  expect(skipped).toEqual(['a suspended', 'a suspended', 'c suspended'])
})

test('unprocessed items of a task are checked again before they are resent', async () => {
  const { pool, suspended, skipped, batcher } = open()
  const a = module('a')
  const ends = [batcher.run(work(a)), batcher.run(work(a))]
  await turn()
  suspended.add(a)
  pool.answer(1)
  expect(await ends[1]).toEqual(UNTOUCHED)
  expect(skipped).toEqual(['a suspended'])
})

test('events that wait beyond the time limit follow the failure mode of their modules', async () => {
  const { pool, skipped, batcher } = open()
  const first = batcher.run(work(module('a')))
  await turn()
  const [open1, closed] = [batcher.run(work(module('b'))), batcher.run(work(module('c', 'closed')))]
  await vi.advanceTimersByTimeAsync(1_001)
  pool.answer()
  await first
  expect(await open1).toEqual(UNTOUCHED)
  expect(await closed).toBeNull()
  expect(skipped).toEqual(['b saturated', 'c saturated'])
  expect(pool.tasks).toEqual([])
})

test('the time limit does not apply while the pool starts', async () => {
  const { pool, batcher } = open()
  pool.isStarting = true
  const first = batcher.run(work(module('a')))
  await turn()
  const second = batcher.run(work(module('b')))
  await vi.advanceTimersByTimeAsync(60_000)
  pool.answer()
  await first
  await turn()
  pool.answer()
  expect(await second).toEqual([{ source: 0, written: { name: null, data: 'b' } }])
})

const texts = (out: StreamItemResult['out'] | null) =>
  out?.map(({ written }) => written?.data ?? 'x').join('')

test('text that a lost module has held back goes on in front of the new text', async () => {
  const { pool, batcher } = open('OnText')
  const one = { ...work(module('a')), states: ['held '] }
  const end = batcher.run(one)
  await turn()
  pool.tasks.shift()?.end({ kind: 'timeout', progress: 1 })
  expect(texts(await end)).toBe('held x')
  expect(one.states).toEqual([''])
})

test('text of a suspended module goes on to the next one behind what that holds; the last one passes it', async () => {
  const { pool, suspended, batcher } = open('OnText')
  const [a, b, c] = [module('a'), module('b'), module('c')]
  const one = { ...work(a, b, c), states: ['3', '2', '1 '] }
  suspended.add(a).add(c)
  const end = batcher.run(one)
  await turn()
  expect(pool.states).toEqual(['23'])
  pool.answer()
  expect(texts(await end)).toBe('1 b')
  expect(one.states).toEqual(['', 'b', ''])
})
