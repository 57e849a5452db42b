/** Reloading the configuration of a running gateway: what applies at once, what needs a restart, what is rejected. */
import { afterEach, expect, test } from 'vitest'
import { definePlugin, Type } from '#kernel'
import { type GatewayControls, serve } from '../../kernel/serve.ts'
import { loadConfig } from '../../plugins/cli/configuration/load.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  dropAnswer,
  jsonAnswer,
  type ScriptedWorker,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const TIMEOUT = { timeout: 15_000 }
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function startWorker(model: string): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker({ models: [model] })
  worker.script(CHAT, jsonAnswer({ object: 'chat.completion', model, choices: [] }))
  open.push(worker)
  return worker
}

const spec = (worker: ScriptedWorker, model: string, more: object = {}) => ({
  url: worker.url,
  models: [{ id: model }],
  runtime_type: 'sglang',
  ...more,
})

async function start(
  plugins: Record<string, unknown>,
  kernel: Record<string, unknown> = {},
): Promise<TestGateway> {
  const gateway = await startGateway({
    kernel,
    plugins: { auth: {}, health: {}, policies: {}, chat: {}, reload: {}, ...plugins },
  })
  open.push({ close: () => gateway.stop() })
  return gateway
}

const apply = async (gateway: TestGateway, key?: string) => {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const reply = await fetch(`${gateway.url}/config/apply`, { method: 'POST', headers })
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> }
}

const chat = (gateway: TestGateway, model: string, key?: string) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: key === undefined ? undefined : { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [] }),
  })

const workersOf = (...workers: object[]) => ({
  workers,
  health: { disable_health_check: true, drain_settle_secs: 0 },
})

test.each([
  { apiKey: 'key' },
  { controlPlaneKeys: ['o:O:admin:key'] },
  { keys: [{ id: 'k', principal: 'o', role: 'admin', key: 'key' }] },
])('a reload that removes the last credential is rejected and opens no route: %j', async (auth) => {
  const gateway = await start({ auth })
  gateway.rewrite({ auth: {} })
  const { status, body } = await apply(gateway, 'key')
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain('plugins.auth would have no apiKey')
  expect([(await chat(gateway, 'a')).status, (await apply(gateway)).status]).toEqual([401, 401])
})

test('serving routes stay closed without their last key', async () => {
  const operator = { controlPlaneKeys: ['o:O:admin:key'] }
  const gateway = await start({ auth: { ...operator, tenantKeys: ['a:tenant'] } })
  expect((await chat(gateway, 'a', 'tenant')).status).not.toBe(401)
  gateway.rewrite({ auth: operator })
  expect((await apply(gateway, 'key')).status).toBe(200)
  expect([(await chat(gateway, 'a', 'tenant')).status, (await chat(gateway, 'a')).status]).toEqual([401, 401])
})

test('workers are added, removed and changed; the running request of a removed one completes', async () => {
  const [a, b, c] = [await startWorker('a'), await startWorker('b'), await startWorker('c')]
  const gateway = await start({ workers: workersOf(spec(a, 'a'), spec(b, 'b')) })
  await expect.poll(async () => (await chat(gateway, 'b')).status, TIMEOUT).toBe(200)
  const held = Promise.withResolvers<void>()
  a.script(CHAT, async () => {
    await held.promise
    return jsonAnswer({ choices: [] })
  })
  const running = chat(gateway, 'a')
  await a.received(CHAT, 1)

  gateway.rewrite({ workers: workersOf(spec(b, 'b', { priority: 7 }), spec(c, 'c')) })
  expect(await apply(gateway)).toEqual({
    status: 200,
    body: { applied: ['plugins.workers.workers'], needs_restart: [] },
  })
  await expect.poll(async () => (await chat(gateway, 'c')).status, TIMEOUT).toBe(200)
  await expect
    .poll(async () => {
      const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
        workers: { url: string; priority: number }[]
      }
      return workers.map(({ url, priority }) => [url, priority]).sort()
    }, TIMEOUT)
    .toEqual(
      [
        [b.url, 7],
        [c.url, 50],
      ].sort(),
    )
  expect((await chat(gateway, 'a')).status).toBe(404)
  held.resolve()
  expect((await running).status).toBe(200)
})

test('keys, limits and the policy change; settings that need a restart are reported and not applied', async () => {
  const a = await startWorker('a')
  const workers = workersOf(spec(a, 'a'))
  const gateway = await start({ auth: { apiKey: 'first' }, limits: {}, workers }, { policy: 'random' })
  await expect.poll(async () => (await chat(gateway, 'a', 'first')).status, TIMEOUT).toBe(200)
  gateway.rewrite(
    {
      auth: { apiKey: 'second', auditLog: false },
      limits: { requestsPerSecond: 0.001, burst: 1 },
      workers,
      chat: { validate: 'full' },
      openapi: {},
    },
    { policy: 'round_robin', threads: 0, port: 1, log: { level: 'error' } },
  )
  expect((await apply(gateway, 'first')).body).toEqual({
    applied: [
      'kernel.log.level',
      'kernel.policy',
      'plugins.auth.apiKey',
      'plugins.limits.requestsPerSecond',
      'plugins.limits.burst',
    ],
    needs_restart: ['kernel.port', 'plugins.auth.auditLog', 'plugins.chat.validate', 'plugins.openapi'],
  })
  expect((await chat(gateway, 'a', 'first')).status).toBe(401)
  expect((await chat(gateway, 'a', 'second')).status).toBe(200)
  expect((await chat(gateway, 'a', 'second')).status).toBe(429)
  expect(await (await fetch(`${gateway.url}/openapi.json`)).json()).toHaveProperty('error')
  // Nothing is applied; settings that need a restart are still reported.
  expect((await apply(gateway, 'second')).body).toMatchObject({ applied: [] })
})

test('an invalid configuration changes nothing, and the response names the error', async () => {
  const a = await startWorker('a')
  const workers = workersOf(spec(a, 'a'))
  const gateway = await start({ workers })
  await expect.poll(async () => (await chat(gateway, 'a')).status, TIMEOUT).toBe(200)
  const lastReload = async () => {
    const page = await (await fetch(gateway.metricsUrl as string)).text()
    return page.match(/^weir_config_last_reload_\w+ .*$/gm)
  }
  const [, loadedAt] = (await lastReload()) ?? []
  expect(Number(loadedAt?.split(' ')[1])).toBeCloseTo(Date.now() / 1000, -2)
  for (const [sections, kernel, text] of [
    [{ auth: { apiKey: 7 } }, {}, 'plugins.auth.apiKey'],
    [{ auth: { apiKey: ' padded ' } }, {}, 'plugins.auth.apiKey must not start or end with spaces'],
    [{ auth: { apiKey: 'new' } }, { policy: 'unregistered' }, 'unregistered'],
    [{ workers: workersOf({ url: 'no-scheme' }) }, {}, 'begin with a scheme'],
  ] as const) {
    gateway.rewrite({ workers, ...sections }, kernel)
    const { status, body } = await apply(gateway)
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(text)
    expect((await chat(gateway, 'a')).status).toBe(200)
    expect(await lastReload()).toEqual(['weir_config_last_reload_successful 0', loadedAt])
  }
  gateway.rewrite({ workers })
  expect((await apply(gateway)).status).toBe(200)
  expect((await lastReload())?.[0]).toBe('weir_config_last_reload_successful 1')
})

test('after a reload, balancing, retries and breakers use the new settings', async () => {
  const [a, b] = [await startWorker('m'), await startWorker('m')]
  const gateway = await start(
    { workers: workersOf(spec(a, 'm'), spec(b, 'm')) },
    { policy: 'consistent_hashing', retry: { maxAttempts: 1 }, breaker: { enabled: false } },
  )
  const sticky = async () => {
    const headers = { 'x-weir-routing-key': 'one' }
    const body = JSON.stringify({ model: 'm', messages: [] })
    return (await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })).status
  }
  const served = () => [a, b].map((worker) => worker.requestsTo(CHAT).length)
  await expect.poll(sticky, TIMEOUT).toBe(200)
  for (let count = 0; count < 5; count++) expect(await sticky()).toBe(200)
  expect(served()).toContain(0)

  const before = served()
  gateway.rewrite({}, { policy: 'round_robin' })
  expect((await apply(gateway)).body).toMatchObject({ applied: ['kernel.policy'] })
  for (let count = 0; count < 6; count++) expect(await sticky()).toBe(200)
  expect(served()).toEqual(before.map((count) => count + 3))

  a.script(CHAT, dropAnswer())
  expect([await sticky(), await sticky()].sort()).toEqual([200, 502])
  const retry = { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 1 }
  gateway.rewrite({}, { policy: 'round_robin', retry })
  expect((await apply(gateway)).body).toMatchObject({ applied: ['kernel.retry'] })
  expect([await sticky(), await sticky()]).toEqual([200, 200])

  const breaker = { enabled: true, failureThreshold: 1 }
  gateway.rewrite({}, { policy: 'round_robin', retry, breaker })
  expect((await apply(gateway)).body).toMatchObject({ applied: ['kernel.breaker'] })
  expect([await sticky(), await sticky()]).toEqual([200, 200])
  const requestsBefore = a.requestsTo(CHAT).length
  for (let count = 0; count < 4; count++) expect(await sticky()).toBe(200)
  expect(a.requestsTo(CHAT)).toHaveLength(requestsBefore)
})

test('if one plugin rejects its change, the changes of the others are reverted', async () => {
  const a = await startWorker('a')
  const workers = workersOf(spec(a, 'a'))
  const gateway = await start({ auth: { apiKey: 'first' }, workers })
  await expect.poll(async () => (await chat(gateway, 'a', 'first')).status, TIMEOUT).toBe(200)
  // No plugin supports this scheme, which is detected only at registration.
  gateway.rewrite({ auth: { apiKey: 'second' }, workers: workersOf({ url: 'grpc://127.0.0.1:1' }) })
  const { status, body } = await apply(gateway, 'first')
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain('grpc')
  expect((await chat(gateway, 'a', 'second')).status).toBe(401)
  expect((await chat(gateway, 'a', 'first')).status).toBe(200)
})

test('a SIGHUP during the start is handled once the start is complete', async () => {
  const release = Promise.withResolvers<void>()
  const given: string[] = []
  const slow = definePlugin({
    manifest: {
      name: 'slow',
      version: '0.0.0',
      description: 'of a test',
      config: Type.Object({ word: Type.String() }),
      reloads: ['word'],
    },
    register: (_host, { word }) => ({
      start: () => {
        given.push(word)
        return release.promise
      },
      reload: (next) => void given.push(next.word),
    }),
  })
  const watched = Promise.withResolvers<GatewayControls>()
  const config = await loadConfig({
    text: JSON.stringify({
      kernel: { threads: 0, port: 0, log: { level: 'silent' } },
      plugins: { slow: { word: 'a' } },
    }),
    env: {},
    pluginSchemas: { names: ['slow'], find: async () => slow.manifest },
  })
  const ended = serve({
    catalog: { slow: async () => ({ default: slow }) },
    entry: import.meta.url,
    config,
    source: {
      readChange: async (running) => ({
        next: { ...running, plugins: { slow: { word: 'b' } } },
        applied: ['plugins.slow.word'],
        needsRestart: [],
        plugins: ['slow'],
      }),
      show: async ({ file }) => ({ file, values: [] }),
    },
    watch: (controls) => {
      watched.resolve(controls)
      return () => {}
    },
  })
  const controls = await watched.promise
  open.push({
    close: () => {
      controls.demandShutdown(0)
      return ended
    },
  })
  await expect.poll(() => given, TIMEOUT).toEqual(['a'])
  controls.reload()
  release.resolve()
  await expect.poll(() => given, TIMEOUT).toEqual(['a', 'b'])
})

test('the effective configuration is shown with the source of each value, and without secrets', async () => {
  const secrets = { apiKey: 'root-secret', tenantKeys: ['a:key-of-a'] }
  const gateway = await start({
    auth: { ...secrets, keys: [{ id: 'x', tenant: 'b', key: 'listed-secret' }] },
    workers: { urls: ['http://127.0.0.1:9'] },
  })
  const show = async () => {
    const headers = { authorization: 'Bearer root-secret' }
    const response = await fetch(`${gateway.url}/config`, { headers })
    expect(response.status).toBe(200)
    const text = await response.text()
    for (const secret of ['root-secret', 'key-of-a', 'listed-secret']) expect(text).not.toContain(secret)
    const { file, values } = JSON.parse(text) as {
      file: string | null
      values: { path: string; value: unknown; source: string }[]
    }
    expect(file).toBeNull()
    return (path: string) => values.find((one) => one.path === path)
  }
  const shown = await show()
  expect(shown('plugins.auth.apiKey')).toEqual({
    path: 'plugins.auth.apiKey',
    value: '***',
    source: 'file',
  })
  expect(shown('plugins.auth.tenantKeys')?.value).toEqual(['***'])
  expect(shown('kernel.threads')).toMatchObject({ value: 0, source: 'file' })
  expect(shown('kernel.retry.maxAttempts')).toMatchObject({ value: expect.any(Number), source: 'default' })
  expect(shown('plugins.workers.urls')?.source).toBe('file')
  expect((await fetch(`${gateway.url}/config`)).status).toBe(401)

  gateway.rewrite({ auth: secrets }, { retry: { maxAttempts: 2 } })
  expect((await apply(gateway, 'root-secret')).status).toBe(200)
  expect((await show())('kernel.retry.maxAttempts')).toMatchObject({ value: 2, source: 'file' })
})
