import { afterEach, describe, expect, test } from 'vitest'
import { type TaskPool, TaskStop } from '#kernel'
import type { ScriptedTask } from '../../../test/fixtures/threads/scripted-task.ts'
import { OwnTaskPool, type OwnTaskPoolOptions } from './task-pool.ts'

const pools: TaskPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

const defaults: OwnTaskPoolOptions = {
  file: new URL('../../../test/fixtures/threads/scripted-task.ts', import.meta.url),
  threads: 1,
  queueLimit: 10,
  workerData: { cell: new SharedArrayBuffer(4) },
  heapMiB: 64,
  stackMiB: 4,
}

function open(options: Partial<OwnTaskPoolOptions> = {}): TaskPool {
  const pool = new OwnTaskPool({ ...defaults, ...options })
  pools.push(pool)
  return pool
}

const run = <R>(pool: TaskPool, task: ScriptedTask, stop = new TaskStop()) => pool.run<R>(task, { stop })

test('a task returns its result, and its input is transferred', async () => {
  const pool = open()
  const bytes = new Uint8Array(1_000)
  const result = await pool.run<number>(
    { do: 'length', bytes },
    { stop: new TaskStop(), transfer: [bytes.buffer] },
  )
  expect(result).toBe(1_000)
  expect(bytes.length).toBe(0)
})

test('a looping task is stopped, its thread replaced, and the next one runs', async () => {
  const ended: number[] = []
  const pool = open({ onThreadEnd: (threadId) => ended.push(threadId) })
  const first = await run<number>(pool, { do: 'answer' })
  const stop = new TaskStop()
  const looping = run(pool, { do: 'loop' }, stop)
  const next = run<number>(pool, { do: 'answer' })
  setTimeout(() => stop.stop(), 50)
  await expect(looping).rejects.toMatchObject({ kind: 'stopped' })
  expect(await next).not.toBe(first)
  expect(pool.threads).toBe(1)
  await expect.poll(() => ended).toEqual([first])
})

test('a queued task is stopped without affecting the running one', async () => {
  const pool = open()
  const running = new TaskStop()
  const looping = run(pool, { do: 'loop' }, running)
  const stop = new TaskStop()
  const waiting = run(pool, { do: 'answer' }, stop)
  stop.stop()
  await expect(waiting).rejects.toMatchObject({ kind: 'stopped' })
  expect(pool.open).toBe(1)
  running.stop()
  await expect(looping).rejects.toMatchObject({ kind: 'stopped' })
})

test('tasks run in order of arrival', async () => {
  const pool = open({ queueLimit: 100 })
  const order: number[] = []
  const tasks = Array.from({ length: 50 }, (_, index) =>
    run(pool, { do: 'answer' }).then(() => order.push(index)),
  )
  await Promise.all(tasks)
  expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index))
})

test('tasks beyond threads and queue are rejected at once', async () => {
  const pool = open({ threads: 2, queueLimit: 1 })
  const stops = Array.from({ length: 3 }, () => new TaskStop())
  const looping = stops.map((stop) => run(pool, { do: 'loop' }, stop).catch(() => 'over'))
  await expect(run(pool, { do: 'answer' })).rejects.toMatchObject({ kind: 'full' })
  for (const stop of stops) stop.stop()
  await Promise.all(looping)
  expect(typeof (await run(pool, { do: 'answer' }))).toBe('number')
})

test('a thread that exits during a task fails only this task, and is replaced', async () => {
  const pool = open()
  await run(pool, { do: 'answer' })
  await expect(run(pool, { do: 'exit' })).rejects.toMatchObject({ kind: 'crashed' })
  expect(typeof (await run(pool, { do: 'answer' }))).toBe('number')
})

test('threads have an empty environment, and their messages arrive', async () => {
  const messages: unknown[] = []
  const pool = open({ onMessage: (message) => messages.push(message) })
  expect(await run(pool, { do: 'environment' })).toEqual(['NODE_NO_WARNINGS'])
  const from = await run(pool, { do: 'post' })
  await expect.poll(() => messages).toEqual([{ from }])
})

test('a closed pool rejects tasks, and running ones end', async () => {
  const pool = open()
  const looping = run(pool, { do: 'loop' })
  const failed = expect(looping).rejects.toMatchObject({ kind: 'closed' })
  await new Promise((resolve) => setTimeout(resolve, 20))
  await pool.close()
  await pool.close()
  await failed
  await expect(run(pool, { do: 'answer' })).rejects.toMatchObject({ kind: 'closed' })
})

test('threads may be terminated at any moment of their start without harm to process and pool', async () => {
  for (let afterMs = 0; afterMs < 100; afterMs += 5) {
    const pool = open({ threads: 2 })
    const task = run(pool, { do: 'answer' }).catch((error: { kind: string }) => error.kind)
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    await pool.close()
    expect(['closed', 'number']).toContain(typeof (await task) === 'number' ? 'number' : await task)
  }
}, 180_000)

describe('a thread that is loading its modules is not terminated, because V8 might abort the process', () => {
  const BEGUN = 0
  const LOADED = 1

  function openSlow(threads: number) {
    const cells = new Int32Array(new SharedArrayBuffer(8))
    const file = new URL('../../../test/fixtures/threads/slow-task.ts', import.meta.url)
    return { cells, pool: open({ file, threads, workerData: { cell: cells.buffer } }) }
  }

  const begun = (cells: Int32Array, count: number) =>
    expect.poll(() => Atomics.load(cells, BEGUN), { timeout: 30_000, interval: 5 }).toBe(count)

  test('when the pool is closed', async () => {
    const { cells, pool } = openSlow(2)
    await begun(cells, 2)
    await pool.close()
    expect(Atomics.load(cells, LOADED)).toBe(2)
  })

  test('when its task is stopped', async () => {
    const { cells, pool } = openSlow(1)
    const stop = new TaskStop()
    const task = pool.run<number>(null, { stop }).catch((error: { kind: string }) => error.kind)
    await begun(cells, 1)
    stop.stop()
    // Either stopped, or completed before.
    expect(['stopped', 1]).toContain(await task)
    expect(Atomics.load(cells, LOADED)).toBe(1)
  })

  test('a thread that loads forever does not keep the pool open', async () => {
    const file = new URL('../../../test/fixtures/threads/endless-task.ts', import.meta.url)
    const pool = new OwnTaskPool({ ...defaults, file }, 200)
    const task = run(pool, { do: 'answer' }).catch((error: { kind: string }) => error.kind)
    await pool.close()
    expect(await task).toBe('closed')
  })
})
