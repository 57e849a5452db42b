/** Pods become workers and stop being workers, as seen through the routes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type FakePod, type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const WAIT = { timeout: 30_000 }

let api: KubernetesApi
let engine: ScriptedWorker
let gateway: TestGateway
const cleanups: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  api = await startKubernetesApi()
  engine = await startScriptedWorker()
  engine.script(CHAT, jsonAnswer({}))
  cleanups.push(
    () => api.close(),
    () => engine.close(),
  )
})
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(config: Record<string, unknown> = {}, workers: Record<string, unknown> = {}) {
  gateway = await startGateway({
    plugins: {
      auth: {},
      health: {},
      chat: {},
      workers: { health: { drain_settle_secs: 0 }, ...workers },
      kubernetes: {
        selector: { app: 'engine' },
        kubeconfig: api.kubeconfig,
        port: engine.port,
        coalesceMs: 5,
        resyncSecs: 3_600,
        ...config,
      },
    },
  })
  cleanups.push(() => gateway.stop())
}

interface Worker {
  id: string
  url: string
  status: string
  worker_type: string
  labels?: Record<string, string>
  models?: { id: string }[]
}

async function workers(): Promise<Worker[]> {
  return ((await (await fetch(`${gateway.url}/workers`)).json()) as { workers: Worker[] }).workers
}

const metrics = async () => (await fetch(gateway.metricsUrl as string)).text()

const uids = async () => (await workers()).map(({ labels }) => labels?.['weir/pod-uid'])

function pod(change: Partial<FakePod> = {}): FakePod {
  return { name: 'engine-0', uid: 'uid-0', ip: '127.0.0.1', labels: { app: 'engine' }, ...change }
}

test('a ready pod becomes a worker that serves; a terminating pod is drained and removed', async () => {
  await open()
  api.put(pod())
  await expect.poll(async () => (await workers()).map(({ status }) => status), WAIT).toEqual(['ready'])
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'x' }] }),
  })
  expect(reply.status).toBe(200)
  api.put(pod({ isTerminating: true }))
  await expect.poll(workers, WAIT).toEqual([])
})

test('a pod is a worker only while it is ready', async () => {
  await open()
  api.put(pod({ isReady: false }))
  api.put(pod({ name: 'other', uid: 'uid-1', ip: '127.0.0.2', isReady: false }))
  await expect.poll(() => api.requests.length, WAIT).toBeGreaterThan(1)
  expect(await workers()).toEqual([])
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.put(pod({ isReady: false }))
  await expect.poll(workers, WAIT).toEqual([])
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
})

test('changed labels of a running pod change the role and the model of its worker, which keeps its id', async () => {
  await open({
    selector: { app: 'engine', role: 'whole' },
    prefillSelector: { app: 'engine', role: 'prefill' },
    modelIdFrom: 'label:model',
  })
  const seen = async () =>
    (await workers()).map(({ worker_type, models }) => [worker_type, models?.map(({ id }) => id)])
  const labelled = (role: string, model: string) => pod({ labels: { app: 'engine', role, model } })
  api.put(labelled('prefill', 'm-1'))
  await expect.poll(seen, WAIT).toEqual([['prefill', ['m-1']]])
  const [{ id }] = await workers()
  api.put(labelled('whole', 'm-1'))
  await expect.poll(seen, WAIT).toEqual([['regular', ['m-1']]])
  api.put(labelled('whole', 'm-2'))
  await expect.poll(seen, WAIT).toEqual([['regular', ['m-2']]])
  expect((await workers())[0].id).toBe(id)
})

test('workers registered through the configuration are not touched', async () => {
  await open({ resyncSecs: 1 }, { urls: [engine.url] })
  await expect.poll(async () => (await workers()).map(({ status }) => status), WAIT).toEqual(['ready'])
  api.put(pod({ labels: { app: 'else' } }))
  api.delete('engine-0')
  await new Promise((resolve) => setTimeout(resolve, 1_500)) // longer than one resync
  expect((await workers()).map(({ url }) => url)).toEqual([engine.url])
})

test('a new uid at the same address replaces the worker', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  const [before] = await workers()
  api.put(pod({ uid: 'uid-9' }))
  await expect.poll(uids, WAIT).toEqual(['uid-9'])
  expect((await workers())[0].id).not.toBe(before.id)
})

test('registrations and deregistrations are counted, by reason', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.put(pod({ uid: 'uid-9' }))
  await expect.poll(uids, WAIT).toEqual(['uid-9'])
  expect(await metrics()).toContain('weir_discovery_workers_discovered{source="kubernetes"} 1')
  api.delete('engine-0')
  await expect.poll(workers, WAIT).toEqual([])
  const gone = (reason: string) =>
    `weir_discovery_deregistrations_total{source="kubernetes",reason="${reason}"} 1`
  await expect.poll(metrics, WAIT).toContain(gone('pod_gone'))
  const text = await metrics()
  expect(text).toContain(gone('pod_replaced'))
  expect(text).toContain('weir_discovery_registrations_total{source="kubernetes",result="success"} 2')
  expect(text).toContain('weir_discovery_workers_discovered{source="kubernetes"} 0')
  expect(text).toMatch(/weir_discovery_sync_duration_seconds_count\{source="kubernetes"\} [1-9]/)
})

test('a worker that fails its probes stays registered, and is not registered again', async () => {
  await open(
    { resyncSecs: 1 },
    { health: { drain_settle_secs: 0, check_interval_secs: 1, failure_threshold: 1 } },
  )
  api.put(pod())
  const status = async () => (await workers()).map((worker) => worker.status)
  await expect.poll(status, WAIT).toEqual(['ready'])
  engine.script('GET /health', jsonAnswer({}, { status: 500 }))
  await expect.poll(status).toEqual(['failed'])
  const runs = async () =>
    Number(/sync_duration_seconds_count\{source="kubernetes"\} (\d+)/.exec(await metrics())?.[1])
  const before = await runs()
  await expect.poll(runs, WAIT).toBeGreaterThan(before + 1)
  const text = await metrics()
  expect(text).toContain('weir_discovery_workers_discovered{source="kubernetes"} 1')
  expect(text).toContain('weir_discovery_registrations_total{source="kubernetes",result="success"} 1')
  expect(text).not.toMatch(/registrations_total\{source="kubernetes",result="failure"\} [1-9]/)
})

test('a changed port annotation moves the worker', async () => {
  const second = await startScriptedWorker()
  cleanups.push(() => second.close())
  await open()
  api.put(pod())
  await expect.poll(async () => (await workers()).map(({ url }) => url), WAIT).toEqual([engine.url])
  api.put(pod({ annotations: { 'weir/worker-ports': String(second.port) } }))
  await expect.poll(async () => (await workers()).map(({ url }) => url), WAIT).toEqual([second.url])
})

test('without permission to list pods, readiness and a metric say so until it is given', WAIT, async () => {
  api.status = 403
  await open()
  const readiness = async () => {
    const response = await fetch(`${gateway.url}/readiness`)
    return { status: response.status, text: await response.text() }
  }
  await expect.poll(readiness, WAIT).toMatchObject({
    status: 503,
    text: expect.stringMatching(/kubernetes.*the API server answered 403: allow.*list and watch pods/),
  })
  expect((await readiness()).text.length).toBeLessThan(500)
  expect(await metrics()).toContain('weir_discovery_up{source="kubernetes"} 0')
  api.status = 200
  api.put(pod())
  await expect.poll(metrics, WAIT).toContain('weir_discovery_up{source="kubernetes"} 1')
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  expect((await readiness()).text).not.toContain('degraded')
})

test('changes are seen again after the watch was closed', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.cutWatches()
  api.delete('engine-0')
  await expect.poll(workers, WAIT).toEqual([])
})

/** Queries of the lists and of the watches so far. */
function queries() {
  const all = api.requests.map((url) => new URL(url, 'http://api.test').searchParams)
  return {
    lists: all.filter((query) => !query.has('watch')),
    watches: all.filter((query) => query.has('watch')),
  }
}

test('a watch continues from the last bookmark, so that a compaction requires no list', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.timeOutWatches()
  api.compact()
  await expect.poll(() => queries().watches.length, WAIT).toBe(2)
  api.delete('engine-0')
  await expect.poll(workers, WAIT).toEqual([])
  expect(queries().lists).toHaveLength(1)
})

test('after a compaction of changes that were not seen, pods are listed again', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.cutWatches()
  api.delete('engine-0')
  api.put(pod({ name: 'engine-1', uid: 'uid-1' }))
  api.compact()
  await expect.poll(uids, WAIT).toEqual(['uid-1'])
  expect(queries().lists).toHaveLength(2)
})

test('a token that was replaced is read again when the old one is rejected', async () => {
  await open()
  api.put(pod())
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  api.rotateToken('second')
  api.cutWatches()
  api.put(pod({ name: 'engine-1', uid: 'uid-1' }))
  await expect.poll(uids, WAIT).toContain('uid-1')
})

test.each([
  ['no users', undefined],
  ['a user without members', [{ name: 'test' }]],
  ['a file of tokens that is no path', [{ name: 'test', user: { tokenFile: 7 } }]],
])(
  'with a kubeconfig of %s the gateway starts, and asks the API server without a token',
  async (_, users) => {
    const config = JSON.parse(readFileSync(api.kubeconfig, 'utf8'))
    writeFileSync(api.kubeconfig, JSON.stringify({ ...config, users }))
    await open()
    await expect.poll(() => api.requests.length, WAIT).toBeGreaterThan(0)
  },
)

test('long lists are read in pages', async () => {
  for (let index = 0; index < 251; index++)
    api.put(pod({ name: `other-${index}`, uid: `other-${index}`, labels: { app: 'other' } }))
  api.put(pod())
  await open()
  await expect.poll(uids, WAIT).toEqual(['uid-0'])
  expect(queries().lists.map((query) => query.get('continue'))).toEqual([null, '250'])
})

describe('settings', () => {
  test('the selector is sent to the API server', async () => {
    await open()
    await expect.poll(() => api.requests.join(' '), WAIT).toContain('labelSelector=app%3Dengine')
  })

  test('without a selector the gateway does not start, with advice', async () => {
    await expect(open({ selector: {} })).rejects.toThrow(/plugins\.kubernetes needs a selector/)
  })

  test('role selectors make prefill and decode workers', async () => {
    await open({
      selector: {},
      prefillSelector: { role: 'prefill' },
      decodeSelector: { role: 'decode' },
    })
    api.put(pod({ labels: { role: 'prefill' } }))
    await expect
      .poll(async () => (await workers()).map(({ worker_type }) => worker_type), WAIT)
      .toEqual(['prefill'])
  })
})
