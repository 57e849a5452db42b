/** The front under the client of Ollama. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { Ollama } from 'ollama'
import { startEngine, startGateway, type TestEngine, type TestGateway } from 'weir-gateway/testing'
import plugin from './ollama-front.ts'

let engine: TestEngine
let gateway: TestGateway
let client: Ollama

before(async () => {
  engine = await startEngine({ models: ['demo'] })
  gateway = await startGateway({ own: [plugin], plugins: { workers: { urls: [engine.url] } } })
  client = new Ollama({ host: gateway.url })
})
after(async () => {
  await gateway.stop()
  await engine.stop()
})

const messages = [{ role: 'user', content: 'How is the weather in Rome?' }]
const tools = [
  {
    type: 'function',
    function: {
      name: 'weather',
      description: 'Current weather.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]
const lastBody = async () => JSON.parse((await engine.requests('/v1/chat/completions')).at(-1)?.body ?? '')

test('a streamed chat: thinking, text, counts', async () => {
  await engine.answer({ reasoning: 'Let me see.', text: 'Sunny and warm.' })
  const parts = []
  for await (const part of await client.chat({ model: 'demo', messages, stream: true, think: true }))
    parts.push(part)
  assert.equal(parts.map(({ message }) => message.content).join(''), 'Sunny and warm.')
  assert.equal(parts.map(({ message }) => message.thinking ?? '').join(''), 'Let me see.')
  const last = parts.at(-1)
  assert.equal(last?.done, true)
  assert.equal(last?.done_reason, 'stop')
  assert.ok((last?.eval_count ?? 0) > 0 && (last?.prompt_eval_count ?? 0) > 0)
  assert.ok(parts.length > 2)
})

test('a whole chat with options, an image and a format', async () => {
  await engine.answer({ text: '{"sky":"blue"}' })
  const { message } = await client.chat({
    model: 'demo:latest',
    messages: [{ ...messages[0], images: ['iVBORw0KGgo='] }],
    format: { type: 'object', properties: { sky: { type: 'string' } } },
    options: { temperature: 0.5, num_predict: 7, stop: ['END'] },
  })
  assert.deepEqual(JSON.parse(message.content), { sky: 'blue' })
  const sent = await lastBody()
  assert.equal(sent.model, 'demo')
  assert.equal(sent.temperature, 0.5)
  assert.equal(sent.max_tokens, 7)
  assert.deepEqual(sent.stop, ['END'])
  assert.equal(sent.messages[0].content[1].image_url.url, 'data:image/png;base64,iVBORw0KGgo=')
  assert.equal(sent.response_format.json_schema.schema.type, 'object')
})

for (const stream of [false, true])
  test(`a tool call and its result (streamed: ${stream})`, async () => {
    await engine.answer({ tool_calls: [{ name: 'weather', arguments: { city: 'Rome' } }] })
    const request = { model: 'demo', messages, tools }
    const calls = []
    if (stream) {
      for await (const { message } of await client.chat({ ...request, stream }))
        calls.push(...(message.tool_calls ?? []))
    } else calls.push(...((await client.chat({ ...request, stream })).message.tool_calls ?? []))
    assert.equal(calls.length, 1)
    assert.deepEqual(calls[0].function, { name: 'weather', arguments: { city: 'Rome' } })
    await engine.answer({ text: 'It is sunny.' })
    const { message } = await client.chat({
      ...request,
      messages: [
        ...messages,
        { role: 'assistant', content: '', tool_calls: calls },
        { role: 'tool', content: 'sunny', tool_name: 'weather' },
      ],
    })
    assert.equal(message.content, 'It is sunny.')
    const [, call, result] = (await lastBody()).messages
    assert.deepEqual(JSON.parse(call.tool_calls[0].function.arguments), { city: 'Rome' })
    assert.equal(result.tool_call_id, call.tool_calls[0].id)
  })

test('generate, whole and streamed; tags', async () => {
  await engine.answer({ text: 'Once upon a time', count: 2 })
  const { response } = await client.generate({ model: 'demo', prompt: 'A story', system: 'Be brief' })
  assert.equal(response, 'Once upon a time')
  assert.deepEqual((await lastBody()).messages[0], { role: 'system', content: 'Be brief' })
  let text = ''
  for await (const part of await client.generate({ model: 'demo', prompt: 'A story', stream: true }))
    text += part.response
  assert.equal(text, 'Once upon a time')
  assert.deepEqual(
    (await client.list()).models.map(({ name }) => name),
    ['demo'],
  )
})

test('errors: before the stream a status, in the stream a line', async () => {
  await assert.rejects(client.chat({ model: 'missing', messages }), /missing/)
  const wrong = await gateway.post('/api/chat', { model: 'demo' })
  assert.equal(wrong.status, 400)
  assert.match(((await wrong.json()) as { error: string }).error, /messages/)
  await engine.fault('drop-after=2')
  await assert.rejects(async () => {
    for await (const _ of await client.chat({ model: 'demo', messages, stream: true }));
  })
})

test('the stream has one content type and no heartbeats', async () => {
  const response = await gateway.post('/api/chat', { model: 'demo', messages })
  assert.equal(response.headers.get('content-type'), 'application/x-ndjson')
  for (const line of (await response.text()).trimEnd().split('\n')) JSON.parse(line)
})

test('a client that aborts stops the engine', async () => {
  const slow = await startEngine({ models: ['slow'], itlMs: 50, tokens: 1_000 })
  const other = await startGateway({ own: [plugin], plugins: { workers: { urls: [slow.url] } } })
  const stream = await new Ollama({ host: other.url }).chat({ model: 'slow', messages, stream: true })
  await assert.rejects(async () => {
    for await (const _ of stream) stream.abort()
  })
  await other.stop()
  await slow.stop()
})

test('workers that serve the API: the stream passes, its usage counts, a cut and a stall are noticed', async () => {
  const part = (members: object) =>
    `${JSON.stringify({ model: 'own', message: { content: 'a' }, ...members })}\n`
  const last = part({ done: true, prompt_eval_count: 5, eval_count: 2 })
  const script: { lines: string; ends: boolean } = { lines: '', ends: true }
  const server = createServer((request, response) => {
    const isChat = request.url === '/api/chat'
    response.writeHead(200, { 'content-type': isChat ? 'application/x-ndjson' : 'application/json' })
    response.write(isChat ? script.lines : '{}')
    if (!isChat || script.ends) response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const workers = [{ url, apis: ['ollama'], models: [{ id: 'own' }] }]
  const relaying = await startGateway({
    own: [plugin],
    kernel: { breaker: { stallMs: 1_000 } },
    plugins: { workers: { workers }, metrics: { port: 0 } },
  })
  const chat = () => relaying.post('/api/chat', { model: 'own', messages })
  const counted = async () => {
    const page = await (await fetch(String(relaying.metricsUrl))).text()
    return [...page.matchAll(/^weir_worker_tokens_total\{.*"(input|output)".*\} (\d+)$/gm)].map(
      (found) => found[2],
    )
  }

  script.lines = part({ done: false }) + part({ done: false }) + last
  assert.equal(await (await chat()).text(), script.lines)
  assert.deepEqual(await counted(), ['5', '2'])

  script.lines = part({ done: false })
  await assert.rejects(async () => (await chat()).text())

  script.lines = part({ error: 'out of memory' })
  assert.equal(await (await chat()).text(), script.lines)

  script.lines = part({ done: false })
  script.ends = false
  const silent = await chat()
  for (;;) {
    const { workers: shown } = (await (await relaying.get('/workers')).json()) as { workers: object[] }
    if (JSON.stringify(shown).includes('"is_stalled":true')) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await silent.body?.cancel()
  await relaying.stop()
  server.closeAllConnections()
  server.close()
})
