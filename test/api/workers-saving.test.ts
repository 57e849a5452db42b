/** A full disk: changes of workers fail in their jobs, and nothing changes. */
import { expect, test } from 'vitest'
import { definePlugin, Store, Type } from '#kernel'
import { MemoryStore, storeGone } from '../support/memory-store.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

async function openSavingFleet() {
  const store = new MemoryStore()
  const plugin = definePlugin({
    manifest: {
      name: 'test-store',
      version: '0.0.0',
      description: 'Records that can be made to fail.',
      provides: [Store],
      config: Type.Object({}),
    },
    register: (host) => host.provide(Store, store),
  })
  const fleet = await openFleet({ workers: [], own: [plugin], plugins: { 'test-store': {} } })
  const worker = await startScriptedWorker({})
  const spec = { url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang', priority: 7 }
  const call = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(fleet.gateway.url + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
    })
    // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape
    return { status: reply.status, body: (await reply.json()) as any }
  }
  const show = async (id: string) => (await call('GET', `/workers/${id}`)).body
  const saved = () => store.collection<{ spec: { priority: number } }>('workers').list('_gateway')
  return { store, worker, spec, call, show, saved }
}

test('a worker that cannot be saved is not added; it can be added again with the same id once there is space', async () => {
  const { store, worker, spec, call, show, saved } = await openSavingFleet()
  store.failure = storeGone()
  const { body } = await call('POST', '/workers', spec)
  await expect.poll(async () => JSON.stringify(await show(body.worker_id))).toContain('could not be saved')
  expect(
    (await call('GET', '/workers')).body.workers.filter((one: { status: string }) => one.status === 'ready'),
  ).toEqual([])
  store.failure = null
  const again = await call('POST', '/workers', spec)
  expect(again.body.worker_id).toBe(body.worker_id)
  await expect.poll(async () => (await show(body.worker_id)).status).toBe('ready')
  expect(await saved()).toHaveLength(1)
  await worker.close()
})

test('a change that cannot be saved is not applied, and a removal not started', async () => {
  const { store, worker, spec, call, show, saved } = await openSavingFleet()
  const { worker_id: id } = (await call('POST', '/workers', spec)).body
  await expect.poll(async () => (await show(id)).status).toBe('ready')
  await expect.poll(saved).toHaveLength(1)
  store.failure = storeGone()
  expect((await call('PATCH', `/workers/${id}`, { priority: 9 })).status).toBe(202)
  await expect.poll(async () => JSON.stringify(await show(id))).toContain('could not be saved')
  expect(await show(id)).toMatchObject({ status: 'ready', priority: 7 })
  expect((await call('PUT', `/workers/${id}`, { ...spec, priority: 11 })).status).toBe(202)
  const message = expect.stringContaining('could not be saved')
  await expect
    .poll(async () => (await show(id)).job_status)
    .toMatchObject({ job_type: 'AddWorker', status: 'failed', message })
  expect(await show(id)).toMatchObject({ status: 'ready', priority: 7 })
  expect((await call('DELETE', `/workers/${id}`)).status).toBe(202)
  await expect.poll(async () => (await show(id)).status).toBe('ready')
  store.failure = null
  expect(await saved()).toMatchObject([{ spec: { priority: 7 } }])
  await call('PATCH', `/workers/${id}`, { priority: 9 })
  await expect.poll(async () => (await show(id)).priority).toBe(9)
  expect(await saved()).toMatchObject([{ spec: { priority: 9 } }])
  await call('DELETE', `/workers/${id}`)
  await expect.poll(saved).toEqual([])
  await worker.close()
})

test('concurrent changes of one worker during a slow save all apply', async () => {
  const { store, worker, spec, call, show, saved } = await openSavingFleet()
  const { worker_id: id } = (await call('POST', '/workers', spec)).body
  await expect.poll(async () => (await show(id)).status).toBe('ready')
  const disk = Promise.withResolvers<void>()
  store.held = disk.promise
  for (const change of [{ priority: 9 }, { labels: { zone: 'a' } }, { cost: 3 }])
    expect((await call('PATCH', `/workers/${id}`, change)).status).toBe(202)
  disk.resolve()
  const all = { priority: 9, labels: { zone: 'a' }, cost: 3 }
  await expect.poll(() => show(id)).toMatchObject(all)
  await expect.poll(saved).toMatchObject([{ spec: all }])
  await worker.close()
})
