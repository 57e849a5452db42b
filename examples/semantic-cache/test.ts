import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startEngine, startGateway, type TestEngine, type TestGateway } from 'weir-gateway/testing'
import plugin from './semantic-cache.ts'

let chats: TestEngine
let embedder: TestEngine
let gateway: TestGateway

before(async () => {
  chats = await startEngine({ models: ['demo'] })
  embedder = await startEngine({ models: ['embed'] })
  gateway = await startGateway({
    own: [plugin],
    kernel: { retry: { maxAttempts: 1 }, log: { level: 'silent' } },
    plugins: {
      auth: { tenantKeys: ['acme:acme-key', 'other:other-key'] },
      chat: {},
      messages: {},
      workers: { urls: [chats.url, embedder.url] },
      'semantic-cache': { embeddingModel: 'embed', threshold: 0.8, maxEntries: 3 },
    },
  })
})
after(async () => {
  await gateway.stop()
  await Promise.all([chats.stop(), embedder.stop()])
})

const ask = async (content: string, { key = 'acme-key', ...more }: Record<string, unknown> = {}) => {
  const body = { model: 'demo', messages: [{ role: 'user', content }], ...more }
  const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  return { cache: response.headers.get('x-cache'), status: response.status, text: await response.text() }
}

test('a question in other words gets the same answer; another question does not', async () => {
  const first = await ask('what is the capital of france in europe')
  const second = await ask('What is the capital of France in Europe please')
  assert.deepEqual([first.cache, second.cache], ['miss', 'hit'])
  assert.equal(second.text, first.text)
  assert.equal((await ask('how do I bake bread')).cache, 'miss')
})

test('streams and other formats are served too', async () => {
  const first = await ask('which river flows through the old town of prague')
  const whole = JSON.parse(first.text).choices[0].message.content
  const stream = await ask('Which river flows through the old town of Prague please', { stream: true })
  assert.deepEqual([first.cache, stream.cache, stream.status], ['miss', 'hit', 200])
  const deltas = stream.text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)
  assert.equal([...deltas].map(([, delta]) => JSON.parse(delta)).join(''), whole)

  const seen: (string | null)[] = []
  for (const content of ['what is the capital of norway', 'what is the capital of norway please']) {
    const body = { model: 'demo', max_tokens: 50, stream: true, messages: [{ role: 'user', content }] }
    const response = await gateway.post('/v1/messages', body, { authorization: 'Bearer acme-key' })
    assert.match(await response.text(), /event: message_stop/)
    seen.push(response.headers.get('x-cache'))
  }
  assert.deepEqual(seen, ['miss', 'hit'])
})

test('tenants and settings are apart', async () => {
  const question = 'what is the capital of italy in europe'
  await ask(question)
  assert.equal((await ask(question, { key: 'other-key' })).cache, 'miss')
  assert.equal((await ask(question, { temperature: 1 })).cache, 'miss')
})

test('without the embedding model requests are served without the cache', async () => {
  await embedder.fault('status=500')
  const { status, cache } = await ask('what is the capital of spain')
  assert.deepEqual([status, cache], [200, null])
})
