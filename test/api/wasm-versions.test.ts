/** Versions of a module while requests run: replace, canary, promote, roll back. */
import { expect, test } from 'vitest'
import type { ModuleList } from '../../plugins/wasm/wire.ts'
import { sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const ADD = (name: string) => ({ head: `{"action":"modify","headers_add":[["x-version","${name}"]]}` })

async function send(fleet: WasmFleet, method: string, path: string, body?: unknown) {
  const response = await fetch(fleet.gateway.url + path, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    uuid: text.startsWith('{') ? String(JSON.parse(text).module_uuid) : '',
  }
}

async function replace(fleet: WasmFleet, uuid: string, config: Record<string, string>, more: object = {}) {
  const change = { file_path: await fleet.folder.guest('next'), config, ...more }
  return send(fleet, 'PUT', `/wasm/${uuid}`, change)
}

/** Versions that the requests used, in order of arrival. */
const versionsSeen = (fleet: WasmFleet) =>
  fleet.workers[0].requestsTo(CHAT).map((request) => request.header('x-version'))

test('a new version replaces the old one, which a rollback restores; counters are kept', async () => {
  const fleet = await openWasmFleet()
  const first = await fleet.attach('m', 'OnRequest', { do: 'count' })
  expect(await (await fleet.chat()).text()).toBe('1')
  const { status, uuid } = await replace(fleet, first, { do: 'count', when: 'x-count' })
  expect([status, uuid === first]).toEqual([200, false])
  expect(await (await fleet.chat(undefined, { 'x-count': '1' })).text()).toBe('2')
  expect((await fleet.list()).modules.map(({ module_uuid }) => module_uuid)).toEqual([uuid])
  expect((await send(fleet, 'POST', `/wasm/${uuid}/rollback`)).uuid).toBe(first)
  expect(await (await fleet.chat()).text()).toBe('3')
  const none = await send(fleet, 'POST', `/wasm/${first}/rollback`)
  expect([none.status, none.text]).toEqual([400, 'there is no earlier version of m'])
})

test('the list has the earlier versions, newest first, as far as a rollback can go back', async () => {
  const fleet = await openWasmFleet()
  const first = await fleet.attach('m', 'OnRequest', ADD('0'))
  const shown = async () => {
    const { modules } = (await (await fleet.get('/wasm?detail=full')).json()) as ModuleList
    return modules.map(({ module_uuid, module_state }) => [
      module_uuid,
      module_state?.earlier_versions,
      module_state?.versions.map(({ module_uuid: uuid }) => uuid),
    ])
  }
  expect(await shown()).toEqual([[first, 0, []]])
  const uuids = [first]
  for (let version = 1; version <= 7; version++)
    uuids.push((await replace(fleet, uuids[version - 1], ADD(String(version)))).uuid)
  expect(await shown()).toEqual([[uuids[7], 5, uuids.slice(2, 7).reverse()]])
  const { modules } = (await (await fleet.get('/wasm?detail=full')).json()) as ModuleList
  expect(modules[0].module_state?.versions[4]).toEqual({
    module_uuid: uuids[2],
    file_path: expect.stringContaining('next'),
    sha256_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    size_bytes: expect.any(Number),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{9}Z$/),
  })
  await send(fleet, 'POST', `/wasm/${uuids[7]}/rollback`)
  expect(await shown()).toEqual([[uuids[6], 4, uuids.slice(2, 6).reverse()]])
})

test('a rejected version changes nothing', async () => {
  const fleet = await openWasmFleet()
  const uuid = await fleet.attach('m', 'OnRequest', ADD('one'))
  for (const change of [
    { file_path: '/nowhere.wasm' },
    { attach_points: [{ Middleware: 'OnTuesday' }] },
    { name: 'n' },
  ])
    expect((await send(fleet, 'PUT', `/wasm/${uuid}`, change)).status).toBe(400)
  await fleet.chat()
  expect(versionsSeen(fleet)).toEqual(['one'])
  expect((await send(fleet, 'POST', `/wasm/${uuid}/promote`)).status).toBe(400)
  expect((await send(fleet, 'PUT', '/wasm/abc', {})).status).toBe(400)
})

test('running streams end on the version that they started with', async () => {
  const fleet = await openWasmFleet()
  const uuid = await fleet.attach('m', 'OnStreamEvent', { do: 'upper' })
  const goOn = Promise.withResolvers<void>()
  const answer = () => sseAnswer(['{"a":"x"}', { until: goOn.promise }, '{"b":"y"}', '[DONE]'])
  fleet.workers[0].script(CHAT, answer)
  const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
    body: { model: 'test-model', stream: true },
  })
  while (!stream.text().includes('"A"')) await new Promise((resolve) => setTimeout(resolve, 5))
  expect((await replace(fleet, uuid, { do: 'drop' })).status).toBe(200)
  goOn.resolve()
  await stream.done
  expect(stream.text()).toContain('{"B":"Y"}')
  fleet.workers[0].script(CHAT, answer)
  const later = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
    body: { model: 'test-model', stream: true },
  })
  await later.done
  expect(later.text()).toBe('data: [DONE]\n\n')
})

test('a canary gets its share, each request uses exactly one version, and a promotion replaces the old one', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  const uuid = await fleet.attach('m', 'OnRequest', ADD('old'))
  const canary = await replace(fleet, uuid, ADD('new'), { trial: { kind: 'canary', percent: 30 } })
  for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 20 }, () => fleet.chat()))
  const seen = versionsSeen(fleet)
  expect(seen.filter((version) => version !== 'old' && version !== 'new')).toEqual([])
  const share = seen.filter((version) => version === 'new').length / seen.length
  expect(share).toBeGreaterThan(0.12)
  expect(share).toBeLessThan(0.5)
  expect((await send(fleet, 'POST', `/wasm/${canary.uuid}/promote`)).status).toBe(200)
  await Promise.all(Array.from({ length: 20 }, () => fleet.chat()))
  expect(new Set(versionsSeen(fleet).slice(-20))).toEqual(new Set(['new']))
  expect((await send(fleet, 'POST', `/wasm/${canary.uuid}/rollback`)).uuid).toBe(uuid)
  await fleet.chat()
  expect(versionsSeen(fleet).at(-1)).toBe('old')
})

test('under load no request is lost, and none uses two versions', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  let uuid = await fleet.attach('m', 'OnRequest', ADD('0'), { placement: 'auto' })
  let isOver = false
  const statuses: number[] = []
  const load = Array.from({ length: 16 }, async () => {
    while (!isOver) statuses.push((await fleet.chat()).status)
  })
  for (let version = 1; version <= 6; version++) {
    uuid = (await replace(fleet, uuid, ADD(String(version)), { placement: 'auto' })).uuid
    if (version % 2 === 0) uuid = (await send(fleet, 'POST', `/wasm/${uuid}/rollback`)).uuid
  }
  isOver = true
  await Promise.all(load)
  expect(new Set(statuses)).toEqual(new Set([200]))
  const seen = versionsSeen(fleet)
  expect(seen).toHaveLength(statuses.length)
  expect(seen.filter((version) => !/^\d$/.test(version ?? 'none'))).toEqual([])
})

test('the list has cost, state and version of each module', async () => {
  const fleet = await openWasmFleet({ breaker: { failures: 2, coolOffMs: 60_000 } })
  const uuid = await fleet.attach('m', 'OnRequest', { do: 'trap', when: 'x-trap' })
  await fleet.chat()
  for (let i = 0; i < 2; i++) await fleet.chat(undefined, { 'x-trap': '1' })
  const { modules } = (await (await fleet.get('/wasm?detail=full')).json()) as ModuleList
  expect(modules).toHaveLength(1)
  expect(modules[0]).toMatchObject({
    module_uuid: uuid,
    module_state: {
      failed_executions: 2,
      placement: 'pool',
      instance: 'fresh',
      trial: null,
      earlier_versions: 0,
    },
  })
  const { fuel_total = 0, fuel_max = 0, suspended_until } = modules[0].module_state ?? {}
  expect(fuel_max).toBeGreaterThan(100)
  expect(fuel_total).toBeGreaterThan(fuel_max)
  expect(suspended_until).toMatch(/^\d{4}-/)
  const metrics = await fleet.metrics()
  expect(metrics.get('weir_wasm_fuel_total{module="m"}')).toBe(fuel_total)
  const seconds = 'weir_wasm_execution_duration_seconds_sum{module="m",attach_point="OnRequest"}'
  expect(metrics.get(seconds)).toBeCloseTo((modules[0].module_state?.cpu_ms ?? 0) / 1_000, 6)
  const { sha256_hash } = modules[0].module_meta
  const info = (id: string) => `weir_wasm_module_info{module="m",module_uuid="${id}",sha256="${sha256_hash}"}`
  expect(metrics.get(info(uuid))).toBe(1)
  await fleet.remove(uuid)
  expect((await fleet.metrics()).get(info(uuid))).toBeUndefined()
})

test('a call that exceeds the inline fuel and is repeated in the pool counts once', async () => {
  const fleet = await openWasmFleet()
  const counter = await fleet.attach('counter', 'OnRequest', { do: 'mark' }, { placement: 'auto' })
  const heavy = { do: 'spin', ms: '20', when: 'x-heavy' }
  await fleet.attach('heavy', 'OnRequest', heavy, { placement: 'auto' })
  // Enough calls that both modules run inline.
  const light = 40
  for (let i = 0; i < light; i++) expect((await fleet.chat()).status).toBe(200)
  expect((await fleet.chat(undefined, { 'x-heavy': '1' })).status).toBe(200)
  await replace(fleet, counter, { do: 'count' })
  expect(await (await fleet.chat()).text()).toBe(String(light + 2))
})
