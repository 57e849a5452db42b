/** Requests that match a module, and requests that do not. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { ModuleDescriptor } from '../../plugins/wasm/wire.ts'
import { rawAnswer } from '../support/scripted-worker.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const mark = (name: string) => ({ head: `{"action":"modify","headers_set":[["x-${name}","1"]]}` })

async function marked(fleet: WasmFleet, headers: Record<string, string> = {}, model = 'test-model') {
  await fleet.chat({ model, messages: [] }, headers)
  const request = fleet.workers[0].requestsTo(CHAT).at(-1)
  return request?.header('x-m') === '1'
}

test.each<[string, NonNullable<ModuleDescriptor['match']>, boolean, boolean]>([
  ['route', { routes: ['/v1/chat/*'] }, true, true],
  ['another route', { routes: ['/v1/embeddings'] }, false, false],
  ['model', { models: ['test-*'] }, true, true],
  ['another model', { models: ['gpt-*'] }, false, false],
  ['tenant', { tenants: ['somebody'] }, false, false],
  ['header', { headers: { 'X-Beta': 'on*' } }, true, false],
  ['no request', { share: 0 }, false, false],
  ['every request', { share: 1 }, true, true],
])('a module for one %s runs for those requests only', async (_, match, withHeader, without) => {
  const fleet = await openWasmFleet()
  await fleet.attach('m', 'OnRequest', mark('m'), { match })
  expect(await marked(fleet, { 'x-beta': 'on-1' })).toBe(withHeader)
  expect(await marked(fleet)).toBe(without)
  const { total_executions } = (await fleet.list()).metrics
  expect(total_executions).toBe(Number(withHeader) + Number(without))
})

test('a module for one tenant runs for its requests only; clients without a key are the tenant anonymous', async () => {
  const auth = { apiKey: 'root', tenantKeys: ['team-a:key-a', 'team-b:key-b'] }
  const keyed = await openWasmFleet({}, { plugins: { auth }, adminKey: 'root' })
  await keyed.attach('m', 'OnRequest', mark('m'), { match: { tenants: ['auth:team-a'] } })
  expect(await marked(keyed, { authorization: 'Bearer key-a' })).toBe(true)
  expect(await marked(keyed, { authorization: 'Bearer key-b' })).toBe(false)
  const open = await openWasmFleet()
  await open.attach('m', 'OnRequest', mark('m'), { match: { tenants: ['anonymous'] } })
  expect(await marked(open)).toBe(true)
})

test('a share of the requests is approximately as configured', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('m', 'OnRequest', {}, { match: { share: 0.25 } })
  for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 20 }, () => fleet.chat()))
  const { total_executions } = (await fleet.list()).metrics
  expect(total_executions).toBeGreaterThan(25)
  expect(total_executions).toBeLessThan(80)
})

test('modules of a higher priority run first', async () => {
  const fleet = await openWasmFleet()
  await fleet.attach('low', 'OnRequest', { ...mark('low'), when: 'x-high' }, { priority: -1 })
  await fleet.attach('high', 'OnRequest', mark('high'), { priority: 5 })
  await fleet.chat()
  expect(fleet.workers[0].requestsTo(CHAT)[0].header('x-low')).toBe('1')
  expect((await fleet.list()).modules.map(({ module_meta }) => module_meta.name)).toEqual(['high', 'low'])
})

test('OnError and OnResponse modules do not run for requests rejected by the access check, unless registered for them', async () => {
  const auth = { apiKey: 'root' }
  const fleet = await openWasmFleet({}, { plugins: { auth }, adminKey: 'root' })
  await fleet.attach('plain', ['OnError', 'OnResponse'], mark('plain'))
  const refused = await fleet.chat(undefined, { authorization: 'Bearer wrong' })
  expect([refused.status, refused.headers.get('x-plain')]).toEqual([401, null])
  expect((await fleet.list()).metrics.total_executions).toBe(0)
  await fleet.attach('curious', ['OnError', 'OnResponse'], mark('curious'), { on: 'refused' })
  const seen = await fleet.chat(undefined, { authorization: 'Bearer wrong' })
  expect([seen.status, seen.headers.get('x-plain'), seen.headers.get('x-curious')]).toEqual([401, null, '1'])
})

test.each([
  ['gzip', { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }, gzipSync('data: secret\n\n')],
  ['lines of JSON', { 'content-type': 'application/x-ndjson' }, Buffer.from('{"secret":1}\n')],
  ['lines of JSON by another name', { 'content-type': 'application/jsonl' }, Buffer.from('{"secret":1}\n')],
  [
    'lines of JSON in other letters, with a parameter',
    { 'content-type': 'Application/X-NDJSON; charset=utf-8' },
    Buffer.from('{"secret":1}\n'),
  ],
])('a stream of %s does not pass a module that must not fail', async (_, headers, body) => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(CHAT, () => rawAnswer(body, { headers }))
  const send = () =>
    fleet.chat({ model: 'test-model', stream: true, messages: [] }, { 'accept-encoding': 'identity' })
  const uuid = await fleet.attach('open', 'OnStreamEvent', { do: 'drop' })
  expect((await send()).status).toBe(200)
  const skipped = 'weir_wasm_skipped_total{module="open",reason="unreadable_stream"}'
  expect((await fleet.metrics()).get(skipped)).toBe(1)
  await fleet.remove(uuid)
  await fleet.attach('closed', 'OnStreamEvent', { do: 'drop' }, { on_failure: 'closed' })
  const response = await send()
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('secret')
})

test('events pass the modules in any spelling of their media type', async () => {
  const fleet = await openWasmFleet()
  const headers = { 'content-type': 'Text/Event-Stream;charset=utf-8' }
  fleet.workers[0].script(CHAT, () => rawAnswer(Buffer.from('data: secret\n\n'), { headers }))
  await fleet.attach('closed', 'OnStreamEvent', { do: 'drop' }, { on_failure: 'closed' })
  const response = await fleet.chat({ model: 'test-model', stream: true, messages: [] })
  expect([response.status, await response.text()]).toEqual([200, ''])
  expect((await fleet.list()).metrics.total_executions).toBeGreaterThan(0)
})
