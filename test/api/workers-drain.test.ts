/** Workers that an operator drains without removing them: no new requests, running ones finish, and back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { jsonAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = { model: 'test-model', messages: [] }
const chat = (fleet: Fleet) => fleet.post('/v1/chat/completions', CHAT)

const list = async (fleet: Fleet) =>
  ((await (await fleet.get('/workers')).json()) as { workers: Record<string, unknown>[] }).workers

const patch = (fleet: Fleet, id: unknown, body: object) =>
  fetch(`${fleet.gateway.url}/workers/${id}`, { method: 'PATCH', body: JSON.stringify(body) })

const statusOf = async (fleet: Fleet, id: unknown) => (await list(fleet)).find((one) => one.id === id)?.status

test('a drained worker finishes its requests and gets no new ones, until the drain ends', async () => {
  const fleet = await openFleet({ workers: [{}, {}], kernel: { policy: 'round_robin' } })
  const [first, second] = fleet.workers
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const answer = jsonAnswer({ id: 'a', object: 'chat.completion', choices: [] })
  for (const worker of [first, second])
    worker.script('POST /v1/chat/completions', async () => {
      await released
      return answer
    })
  const running = [chat(fleet), chat(fleet)]
  await expect.poll(() => [first, second].map(({ requests }) => requests.length)).toEqual([1, 1])
  const { id } = (await list(fleet)).find(({ url }) => url === first.url) ?? {}
  expect((await patch(fleet, id, { drained: true })).status).toBe(202)
  await expect.poll(() => statusOf(fleet, id)).toBe('drained')
  expect((await list(fleet)).find((one) => one.id === id)).toMatchObject({
    drained: true,
    is_healthy: false,
    load: 1,
  })
  release()
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200])
  for (let count = 0; count < 6; count++) expect((await chat(fleet)).status).toBe(200)
  expect([first, second].map(({ requests }) => requests.length)).toEqual([1, 7])

  // Without another worker there is none, as if it were down; the model stays known.
  const { id: other } = (await list(fleet)).find(({ url }) => url === second.url) ?? {}
  await patch(fleet, other, { drained: true })
  await expect.poll(() => statusOf(fleet, other)).toBe('drained')
  expect((await chat(fleet)).status).toBe(503)

  expect((await patch(fleet, id, { drained: false })).status).toBe(202)
  await expect.poll(() => statusOf(fleet, id)).toBe('ready')
  expect((await chat(fleet)).status).toBe(200)
  expect(first.requests).toHaveLength(2)
  // It can be removed while it is drained.
  expect((await fetch(`${fleet.gateway.url}/workers/${other}`, { method: 'DELETE' })).status).toBe(202)
  await expect.poll(async () => (await list(fleet)).length).toBe(1)
})

test('a drain outlives a restart of the gateway and the failure of its engine', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-drain-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const worker = await startScriptedWorker({})
  const health = {
    disable_health_check: false,
    check_interval_secs: 1,
    failure_threshold: 1,
    success_threshold: 1,
  }
  const options = { workers: [], plugins: { storage: { dir } }, workersSection: { health } }
  const fleet = await openFleet(options)
  const spec = { url: worker.url, models: [{ id: 'test-model' }], runtime_type: 'sglang' }
  const { worker_id: id } = (await (await fleet.post('/workers', spec)).json()) as { worker_id: string }
  await expect.poll(() => statusOf(fleet, id)).toBe('ready')
  await patch(fleet, id, { drained: true })
  await expect.poll(() => statusOf(fleet, id)).toBe('drained')
  await fleet.gateway.stop()

  const next = await openFleet(options)
  await expect.poll(() => statusOf(next, id)).toBe('drained')
  await worker.close()
  await expect.poll(() => statusOf(next, id)).toBe('not_ready')
  const again = await startScriptedWorker({ port: worker.port })
  onTestFinished(() => again.close())
  await expect.poll(() => statusOf(next, id)).toBe('drained')
  expect((await chat(next)).status).toBe(503)
})
