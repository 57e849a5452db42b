import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { startEngine, startGateway, type TestEngine, type TestGateway } from 'weir-gateway/testing'
import plugin from './external-auth.ts'

const KEYS = new Map<string, object>([
  ['acme-key', { tenant: 'acme', models: ['demo'] }],
  ['root-key', { tenant: 'operators', role: 'admin' }],
  ['odd-key', {}],
])
let calls = 0
const service = createServer(async (request, response) => {
  calls++
  let text = ''
  for await (const chunk of request) text += chunk
  const found = KEYS.get(JSON.parse(text).credential)
  response.writeHead(found === undefined ? 401 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(found ?? {}))
})

let engine: TestEngine
let gateway: TestGateway

before(async () => {
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  engine = await startEngine({ models: ['demo', 'other'] })
  const { port } = service.address() as AddressInfo
  gateway = await startGateway({
    own: [plugin],
    kernel: { auth: 'required', log: { level: 'silent' } },
    plugins: {
      chat: {},
      workers: { urls: [engine.url] },
      'external-auth': { url: `http://127.0.0.1:${port}/check` },
    },
  })
})
after(async () => {
  await gateway.stop()
  await engine.stop()
  service.close()
})

const chat = async (key: string | null, model = 'demo') => {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] }
  const response = await gateway.post(
    '/v1/chat/completions',
    body,
    key === null ? {} : { authorization: `Bearer ${key}` },
  )
  await response.text()
  return response.status
}

test('the service decides, and its decision is kept', async () => {
  assert.equal(await chat('acme-key'), 200)
  const before = calls
  assert.equal(await chat('acme-key'), 200)
  assert.equal(calls, before)
  assert.equal(await chat('wrong-key'), 401)
  assert.equal(await chat(null), 401)
  const sent = (await engine.requests('/v1/chat/completions')).at(-1)
  assert.equal(sent?.headers.authorization, undefined)
})

test('models and roles restrict a caller', async () => {
  assert.equal(await chat('acme-key', 'other'), 403)
  const workers = (key: string) => gateway.get('/workers', { headers: { authorization: `Bearer ${key}` } })
  assert.equal((await workers('acme-key')).status, 403)
  assert.equal((await workers('root-key')).status, 200)
})

test('requests are rejected without a usable response of the check', async () => {
  assert.equal(await chat('odd-key'), 503)
  service.close()
  service.closeAllConnections()
  assert.equal(await chat('new-key'), 503)
})
