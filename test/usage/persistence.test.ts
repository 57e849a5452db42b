/** Workers survive a restart with a data directory, and do not without one. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  runCommand,
  startBuiltGateway,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const SECRET = 'engine-secret-7f3a'
const chat = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

async function openWorker(): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker()
  workers.push(worker)
  return worker
}

interface WorkerRecord {
  readonly id: string
  readonly url: string
  readonly status: string
  readonly priority: number
  readonly labels?: Record<string, string>
}

async function listWorkers(gateway: BuiltGateway): Promise<WorkerRecord[]> {
  const response = (await (await gateway.get('/workers')).json()) as { workers: WorkerRecord[] }
  return response.workers
}

/** Registers a worker and waits until it is ready. @returns its id */
async function register(gateway: BuiltGateway, worker: ScriptedWorker, more: object = {}): Promise<string> {
  const response = await gateway.send('POST', '/workers', { url: worker.url, ...more })
  expect(response.status).toBe(202)
  const { worker_id: id } = (await response.json()) as { worker_id: string }
  await isReady(gateway, id)
  return id
}

const isReady = (gateway: BuiltGateway, id: string) =>
  until(async () => (await listWorkers(gateway)).find((worker) => worker.id === id)?.status === 'ready')

/** With health checks, so that a ready worker has responded. */
const start = (dir: string | null, threads = 2) =>
  startBuiltGateway({
    kernel: { threads },
    plugins: { workers: { health: {} } },
    flags: dir === null ? [] : ['--data-dir', dir],
  })

async function restart(gateway: BuiltGateway, dir: string | null, threads = 2): Promise<BuiltGateway> {
  expect((await gateway.command.stop()).code).toBe(0)
  return start(dir, threads)
}

for (const threads of [2, 0]) {
  test(`a registered worker survives a restart with its id, its settings and its key (${threads} data threads)`, async () => {
    const dir = join(makeFolder(), 'data')
    const worker = await openWorker()
    const first = await start(dir, threads)
    const settings = { api_key: SECRET, priority: 70, labels: { zone: 'a' } }
    const id = await register(first, worker, settings)
    expect((await first.send('PATCH', `/workers/${id}`, { labels: { tier: 'b' } })).status).toBe(202)
    await until(async () => (await listWorkers(first))[0].labels?.tier === 'b')

    const second = await restart(first, dir, threads)
    // Listed before its first health check.
    expect((await listWorkers(second)).map((record) => record.id)).toEqual([id])
    await isReady(second, id)
    const [record] = await listWorkers(second)
    expect(record).toMatchObject({ id, url: worker.url, priority: 70, labels: { zone: 'a', tier: 'b' } })
    const shown = await Promise.all(
      ['/workers', `/workers/${id}`].map(async (path) => (await second.get(path)).text()),
    )
    expect(shown.join()).not.toContain(SECRET)

    expect((await second.send('POST', '/v1/chat/completions', chat)).status).toBe(200)
    expect((await worker.received(CHAT)).header('authorization')).toBe(`Bearer ${SECRET}`)
    const output = [first, second].flatMap(({ command }) => command.lines).join('\n')
    expect(output).not.toContain(SECRET)
  })
}

test('a deleted worker is not restored, others are', async () => {
  const dir = join(makeFolder(), 'data')
  const [kept, deleted] = [await openWorker(), await openWorker()]
  const first = await start(dir)
  const keptId = await register(first, kept)
  const deletedId = await register(first, deleted)
  expect((await first.send('DELETE', `/workers/${deletedId}`)).status).toBe(202)
  await until(async () => (await listWorkers(first)).length === 1)

  const second = await restart(first, dir)
  await isReady(second, keptId)
  expect((await listWorkers(second)).map(({ id }) => id)).toEqual([keptId])
  expect((await second.get(`/workers/${deletedId}`)).status).toBe(404)
  const third = await restart(second, dir)
  await isReady(third, keptId)
  expect((await listWorkers(third)).map(({ id }) => id)).toEqual([keptId])
})

test('a worker survives a kill of the gateway', async () => {
  const dir = join(makeFolder(), 'data')
  const worker = await openWorker()
  const first = await start(dir)
  const id = await register(first, worker)
  // The record is saved after the worker is ready, in the same job.
  await until(
    async () =>
      ((await (await first.get(`/workers/${id}`)).json()) as { job_status?: unknown }).job_status ===
      undefined,
  )
  first.command.signal('SIGKILL')
  expect((await first.command.ended).signal).toBe('SIGKILL')
  const second = await start(dir)
  await isReady(second, id)
})

test('a worker that is absent after the restart is listed under its id, not ready', async () => {
  const dir = join(makeFolder(), 'data')
  const worker = await openWorker()
  const first = await start(dir)
  const id = await register(first, worker)
  await worker.close()
  const second = await restart(first, dir)
  const [record] = await listWorkers(second)
  expect(record.id).toBe(id)
  expect(record.status).not.toBe('ready')
  expect((await second.get('/readiness')).status).toBe(503)
})

test('without a data directory no worker survives', async () => {
  const worker = await openWorker()
  const first = await start(null)
  await register(first, worker)
  const second = await restart(first, null)
  expect(await listWorkers(second)).toEqual([])
  expect((await second.get('/readiness')).status).toBe(503)
})

test('only one process can use a data directory; the second one exits with an error', async () => {
  const dir = join(makeFolder(), 'data')
  const first = await start(dir)
  // Records may contain API keys of workers.
  expect(statSync(dir).mode & 0o077).toBe(0)
  const second = runCommand(['serve', '--port', '0', '--metrics-port', '0', '--data-dir', dir])
  const end = await second.ended
  expect(end.code).toBe(1)
  expect(end.stderr).toContain(`the data directory ${dir} is in use by another process`)
  expect(end.stderr).not.toMatch(/\n\s+at /)
  expect((await first.get('/health')).status).toBe(200)
  // The lock is released when the process exits.
  await restart(first, dir)
})
