import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startEngine, startGateway, type TestEngine, type TestGateway } from 'weir-gateway/testing'
import plugin from './response-cache.ts'

let engine: TestEngine
let gateway: TestGateway

before(async () => {
  engine = await startEngine({ models: ['demo'] })
  gateway = await startGateway({
    own: [plugin],
    plugins: {
      auth: { tenantKeys: ['acme:acme-key', 'other:other-key'] },
      chat: {},
      messages: {},
      workers: { urls: [engine.url] },
      'response-cache': { maxCharacters: 4_000 },
    },
  })
})
after(async () => {
  await gateway.stop()
  await engine.stop()
})

const ask = async (content: string, { key = 'acme-key', ...more }: Record<string, unknown> = {}) => {
  const body = { model: 'demo', messages: [{ role: 'user', content }], ...more }
  const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  return { cache: response.headers.get('x-cache'), status: response.status, text: await response.text() }
}
const count = async () => (await engine.requests('/v1/chat/completions')).length

test('the second request of the tenant is answered from memory, byte for byte', async () => {
  const first = await ask('Hello')
  const sent = await count()
  const second = await ask('Hello')
  assert.deepEqual([first.cache, second.cache], ['miss', 'hit'])
  assert.equal(second.text, first.text)
  assert.equal(await count(), sent)
})

test('streams are answered from memory too, also with what another request stored', async () => {
  const whole = JSON.parse((await ask('Stream')).text).choices[0].message.content
  const sent = await count()
  for (let number = 0; number < 2; number++) {
    const stream = await ask('Stream', { stream: true })
    const deltas = stream.text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)
    assert.deepEqual([stream.cache, stream.status], ['hit', 200])
    assert.equal([...deltas].map(([, delta]) => JSON.parse(delta)).join(''), whole)
    assert.match(stream.text, /data: \[DONE\]/)
  }
  assert.equal(await count(), sent)
})

test('other formats are answered from memory', async () => {
  const body = { model: 'demo', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }
  const seen: (string | null)[] = []
  for (const stream of [true, true, false]) {
    const headers = { authorization: 'Bearer acme-key' }
    const response = await gateway.post('/v1/messages', { ...body, stream }, headers)
    assert.equal(response.status, 200)
    assert.match(await response.text(), stream ? /event: message_stop/ : /"type":"text"/)
    seen.push(response.headers.get('x-cache'))
  }
  assert.deepEqual(seen, ['miss', 'hit', 'hit'])
})

test('other tenants and other settings are not answered from memory', async () => {
  await ask('Hello')
  assert.equal((await ask('Hello', { key: 'other-key' })).cache, 'miss')
  assert.equal((await ask('Hello', { temperature: 1 })).cache, 'miss')
})

test('errors are not stored, and the oldest answers are dropped', async () => {
  await engine.fault('status=400')
  assert.equal((await ask('Fails')).status, 400)
  assert.equal((await ask('Fails')).cache, 'miss')
  for (let number = 0; number < 10; number++) await ask(`Question ${number}`)
  assert.equal((await ask('Question 9')).cache, 'hit')
  assert.equal((await ask('Question 0')).cache, 'miss')
})
