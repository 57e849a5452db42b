/** One pool for several threads: links joined by message channels, tasks on real threads. */
import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { openTaskPool, type TaskPoolOptions } from '#shared'
import type { ScriptedTask } from '../../test/fixtures/threads/scripted-task.ts'
import { type TaskPool, TaskStop } from '../contracts/task-pool.ts'
import { createLogger } from '../observe/log.ts'
import { ControlLink } from './control-link.ts'
import { DataLink } from './data-link.ts'
import type { LinkUpMessage } from './messages.ts'

const log = createLogger({ level: 'silent', thread: 0 })
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Member {
  readonly pool: TaskPool
  end(): void
}

function join(control: ControlLink, index: number): Member {
  const { port1, port2 } = new MessageChannel()
  const attachment = control.attach((message, transfer) => port1.postMessage(message, transfer))
  port1.on('message', (message: LinkUpMessage) => attachment.receive(message))
  const link = new DataLink({ port: port2, index, replicas: {}, log })
  const end = () => {
    attachment.detach()
    port1.close()
  }
  closers.push(end)
  return { pool: link.processPool('p', 1), end }
}

function open(options: Partial<TaskPoolOptions> = {}) {
  const control = new ControlLink({ log })
  const pool = openTaskPool(control, {
    scope: 'process',
    name: 'p',
    file: new URL('../../test/fixtures/threads/scripted-task.ts', import.meta.url),
    threads: 1,
    queueLimit: 10,
    workerData: { cell: new SharedArrayBuffer(4) },
    heapMiB: 64,
    stackMiB: 4,
    ...options,
  })
  closers.push(() => pool.close())
  return { control, pool }
}

const run = <R>(pool: TaskPool, task: ScriptedTask, stop = new TaskStop()) => pool.run<R>(task, { stop })

test('all threads, including control, run their tasks on the same pool threads', async () => {
  const { control, pool } = open()
  const pools = [pool, join(control, 1).pool, join(control, 2).pool]
  const ids = await Promise.all(pools.map((one) => run<number>(one, { do: 'answer' })))
  expect(new Set(ids).size).toBe(1)
  expect(pools.map(({ threads, open }) => [threads, open])).toEqual([
    [1, 0],
    [1, 0],
    [1, 0],
  ])
})

test('input is transferred to the task, and output back', async () => {
  const { pool } = join(open().control, 1)
  const bytes = new Uint8Array(1_000)
  const task = { do: 'length', bytes }
  expect(await pool.run(task, { stop: new TaskStop(), transfer: [bytes.buffer] })).toBe(1_000)
  expect(bytes.length).toBe(0)
  expect(await run(pool, { do: 'bytes' })).toEqual({ ids: Int32Array.of(1, 2, 3), text: 'abc' })
})

test('a looping task is stopped by its sender, and others run', async () => {
  const { control } = open()
  const [first, second] = [join(control, 1).pool, join(control, 2).pool]
  const stop = new TaskStop()
  const looping = run(first, { do: 'loop' }, stop)
  const next = run<number>(second, { do: 'answer' })
  setTimeout(() => stop.stop(), 50)
  await expect(looping).rejects.toMatchObject({ name: 'TaskFailure', kind: 'stopped' })
  expect(typeof (await next)).toBe('number')
  const over = new TaskStop()
  over.stop()
  await expect(run(first, { do: 'answer' }, over)).rejects.toMatchObject({ kind: 'stopped' })
})

test("failures have the same kinds as on a thread's own pool", async () => {
  const { control } = open({ queueLimit: 0 })
  const { pool } = join(control, 1)
  await expect(run(pool, { do: 'exit' })).rejects.toMatchObject({ kind: 'crashed' })
  await expect(pool.run(() => {}, { stop: new TaskStop() })).rejects.toMatchObject({ kind: 'crashed' })
  const stop = new TaskStop()
  const looping = run(pool, { do: 'loop' }, stop).catch((error: { kind: string }) => error.kind)
  await expect(run(pool, { do: 'answer' })).rejects.toMatchObject({ kind: 'full' })
  stop.stop()
  expect(await looping).toBe('stopped')
})

test('the pool outlives a thread that uses it: its thread stays, and tasks of the dead one end', async () => {
  const { control, pool } = open()
  const dead = join(control, 1)
  const before = await run<number>(dead.pool, { do: 'answer' })
  dead.end()
  const reborn = join(control, 1).pool
  expect(await run(reborn, { do: 'answer' })).toBe(before)

  const looping = join(control, 2)
  void run(looping.pool, { do: 'loop' }).catch(() => {})
  await expect.poll(() => pool.open).toBe(1)
  looping.end()
  expect(typeof (await run(reborn, { do: 'answer' }))).toBe('number')
})

test("closing ends a thread's own tasks only; closing on control closes the pool for all", async () => {
  const { control, pool } = open()
  const [first, second] = [join(control, 1).pool, join(control, 2).pool]
  const looping = run(first, { do: 'loop' })
  const failed = expect(looping).rejects.toMatchObject({ kind: 'closed' })
  await first.close()
  await failed
  await expect(run(first, { do: 'answer' })).rejects.toMatchObject({ kind: 'closed' })
  expect(typeof (await run(second, { do: 'answer' }))).toBe('number')
  await pool.close()
  await expect(run(second, { do: 'answer' })).rejects.toMatchObject({ kind: 'closed' })
  expect(() => {
    control.processPool('q', 1, () => pool)
    control.processPool('q', 1, () => pool)
  }).toThrow('the process-wide task pool q is open already')
})
