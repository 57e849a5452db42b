import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { GuestPool, TaskEnd, TaskRequest } from '../threads/guest-pool.ts'
import { type LoadedModule, type PhaseResult, type PhasesTask, PROGRESS_BASE } from '../threads/guest-task.ts'
import { PhaseBatcher, type PhaseWork } from './phase-batcher.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setImmediate', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const module = (uuid: string, timeoutMs = 1_000) => ({ uuid, timeoutMs }) as LoadedModule
const work = (...modules: LoadedModule[]): PhaseWork => ({
  modules,
  item: {} as PhaseWork['item'],
  body: null,
  origin: { isDone: false, noteModule() {} },
})

/** A pool that responds when the test requests it. */
class StubPool {
  isStarting = false
  readonly tasks: { items: PhasesTask['items']; chain: readonly string[]; end: (end: TaskEnd) => void }[] = []

  run(request: TaskRequest): Promise<TaskEnd> {
    const { items, chain } = request.draft().task as PhasesTask
    return new Promise((end) => this.tasks.push({ items, chain, end }))
  }

  /** Completes the oldest task: each item gets results that name its modules. */
  answer(): void {
    const task = this.tasks.shift()
    const items = task?.items.map(({ modules }) => modules.map((place) => named(task.chain[place])))
    task?.end({ kind: 'result', result: { kind: 'phases', items: items ?? [] } })
  }
}

const named = (uuid: string) => ({ action: uuid, failure: null }) as unknown as PhaseResult
const turn = () => vi.advanceTimersByTimeAsync(0)

function open(threads = 1, maxWaiting = 100) {
  const pool = new StubPool()
  const suspended = new Set<LoadedModule>()
  const isSuspended = (one: LoadedModule) => suspended.has(one)
  return {
    pool,
    suspended,
    batcher: new PhaseBatcher(pool as unknown as GuestPool, threads, maxWaiting, isSuspended),
  }
}

test('calls of one event loop turn are one task, and each gets the results of its own modules', async () => {
  const { pool, batcher } = open()
  const [a, b] = [module('a'), module('b')]
  const ends = Promise.all([batcher.run(work(a)), batcher.run(work(b, a)), batcher.run(work(b))])
  await turn()
  expect(pool.tasks).toHaveLength(1)
  expect(pool.tasks[0].items.map(({ modules }) => modules)).toEqual([[0], [1, 0], [1]])
  pool.answer()
  expect(await ends).toEqual([
    { kind: 'results', results: [named('a')] },
    { kind: 'results', results: [named('b'), named('a')] },
    { kind: 'results', results: [named('b')] },
  ])
})

test('calls that arrive while all threads are busy are queued and split between the threads', async () => {
  const { pool, batcher } = open(2)
  const [a] = [module('a')]
  for (let i = 0; i < 2; i++) void batcher.run(work(a))
  await turn()
  expect(pool.tasks.map(({ items }) => items.length)).toEqual([1, 1])
  for (let i = 0; i < 30; i++) void batcher.run(work(a))
  await turn()
  expect(pool.tasks).toHaveLength(2)
  pool.answer()
  await turn()
  expect(pool.tasks.map(({ items }) => items.length)).toEqual([1, 16])
})

test('calls beyond the queue limit are rejected immediately', async () => {
  const { batcher } = open(1, 2)
  for (let i = 0; i < 3; i++) void batcher.run(work(module('a')))
  expect(await batcher.run(work(module('a')))).toEqual({ kind: 'refused' })
})

test('a call that waited longer than the timeout of its first module is rejected', async () => {
  const { pool, batcher } = open()
  void batcher.run(work(module('a')))
  await turn()
  const late = batcher.run(work(module('a', 50)))
  const patient = batcher.run(work(module('a', 500)))
  await vi.advanceTimersByTimeAsync(60)
  pool.answer()
  expect(await late).toEqual({ kind: 'refused' })
  pool.answer()
  expect((await patient).kind).toBe('results')
})

test('a call that times out fails only its own request; the others of the batch are restarted', async () => {
  const { pool, batcher } = open()
  const [a, b] = [module('a'), module('b')]
  const good = batcher.run(work(a))
  const bad = batcher.run(work(a, b))
  await turn()
  pool.tasks.shift()?.end({ kind: 'timeout', progress: 1 * PROGRESS_BASE + 1 + 1 })
  expect(await bad).toEqual({ kind: 'timeout', module: 1 })
  await turn()
  expect(pool.tasks[0].items).toHaveLength(1)
  pool.answer()
  expect((await good).kind).toBe('results')
})

test('a batch that no thread started is rejected', async () => {
  const { pool, batcher } = open()
  const end = batcher.run(work(module('a')))
  await turn()
  pool.tasks.shift()?.end({ kind: 'timeout', progress: 0 })
  expect(await end).toEqual({ kind: 'refused' })
})

test('a queued call is dropped when its module is suspended or its request has ended', async () => {
  const { pool, batcher, suspended } = open()
  const [a, b] = [module('a'), module('b')]
  void batcher.run(work(a))
  await turn()
  const origin = { isDone: false, noteModule: () => {} }
  const waiting = [batcher.run(work(b)), batcher.run({ ...work(a), origin }), batcher.run(work(a))]
  suspended.add(b)
  origin.isDone = true
  pool.answer()
  await turn()
  expect(await Promise.all(waiting.slice(0, 2))).toEqual([{ kind: 'suspended' }, { kind: 'gone' }])
  expect(pool.tasks[0].items).toHaveLength(1)
})

test('a client disconnect frees the queue entry of its call', async () => {
  const { pool, batcher } = open(1, 2)
  const [a] = [module('a')]
  const [gone, staying] = [false, false].map((isDone) => ({ isDone, noteModule: () => {} }))
  void batcher.run(work(a))
  await turn()
  const left = batcher.run({ ...work(a), origin: gone })
  const stays = batcher.run({ ...work(a), origin: staying })
  gone.isDone = true
  const next = batcher.run(work(a))
  expect(await left).toEqual({ kind: 'gone' })
  expect(await batcher.run(work(a))).toEqual({ kind: 'refused' })
  pool.answer()
  await turn()
  pool.answer()
  expect([(await stays).kind, (await next).kind]).toEqual(['results', 'results'])
})

test('after a call exhausts its fuel the queue is last in, first out, until it is empty', async () => {
  const { pool, batcher } = open()
  const a = module('a')
  const order: string[] = []
  const ask = (name: string) => void batcher.run(work(a)).then(() => order.push(name))
  const endWith = (failure: PhaseResult['failure']) => {
    const results = [{ ...named('a'), failure }]
    pool.tasks.shift()?.end({ kind: 'result', result: { kind: 'phases', items: [results] } })
    return turn()
  }
  for (const name of ['loop 1', 'loop 2', 'loop 3']) ask(name)
  await turn()
  for (const name of ['harmless 1', 'harmless 2']) ask(name)
  await turn()
  await endWith({ kind: 'fuel', message: '' })
  for (let i = 0; i < 4; i++) await endWith(null)
  expect(order).toEqual(['loop 1', 'harmless 2', 'harmless 1', 'loop 3', 'loop 2'])
  ask('first')
  await turn()
  for (const name of ['second', 'third']) ask(name)
  for (let i = 0; i < 3; i++) await endWith(null)
  expect(order.slice(5)).toEqual(['first', 'second', 'third'])
})
