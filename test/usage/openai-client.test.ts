/** The official OpenAI client against the built gateway with two data threads and a key, in front of a simulated engine. */
import OpenAI, { AuthenticationError, NotFoundError } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type BuiltGateway,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import {
  chatChunks,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const KEY = 'sk-flow'
const BEARER = { authorization: `Bearer ${KEY}` }
const model = 'demo'
const messages = [{ role: 'user' as const, content: 'What is the weather in Bern?' }]
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]

let gateway: BuiltGateway
let slow: ScriptedWorker
let client: OpenAI

beforeAll(async () => {
  const sim = await startSim('--model', model, '--tokens', '24', '--ttft-ms', '5', '--itl-ms', '1')
  slow = await startScriptedWorker({ models: ['slow'] })
  gateway = await startBuiltGateway({
    plugins: { auth: { apiKey: KEY, auditLog: false } },
    workers: [
      { url: sim.url, runtime_type: 'sglang', models: [{ id: model }] },
      { url: slow.url, runtime_type: 'sglang', models: [{ id: 'slow' }] },
    ],
  })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
})

afterAll(async () => {
  await stopCommands()
  await slow?.close()
})

test('a streamed chat has the text of the non-streamed one, and usage at its end if requested', async () => {
  const whole = await client.chat.completions.create({ model, messages })
  const text = whole.choices[0].message.content
  expect(text?.length).toBeGreaterThan(20)
  expect(whole).toMatchObject({ object: 'chat.completion', model })

  const stream = await client.chat.completions.create({
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text)
  expect(chunks.at(-2)?.choices[0].finish_reason).toBe(whole.choices[0].finish_reason)
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
  expect(chunks.slice(0, -1).every((chunk) => chunk.usage == null)).toBe(true)
})

test('a stream without include_usage has no usage', async () => {
  const stream = await client.chat.completions.create({ model, messages, stream: true })
  const usages: unknown[] = []
  for await (const chunk of stream) usages.push(chunk.usage ?? null)
  expect(usages.length).toBeGreaterThan(5)
  expect(new Set(usages)).toEqual(new Set([null]))
})

test('tool calls pass through, streamed or not', async () => {
  const request = { model, messages, tools, tool_choice: 'required' as const }
  const whole = await client.chat.completions.create(request)
  expect(whole.choices[0].finish_reason).toBe('tool_calls')
  const [call] = whole.choices[0].message.tool_calls ?? []
  if (call?.type !== 'function') throw new Error('no function call')
  expect(call.function.name).toBe('get_weather')
  expect(JSON.parse(call.function.arguments)).toHaveProperty('city')

  const streamed = await client.chat.completions.stream(request).finalChatCompletion()
  expect(streamed.choices[0].finish_reason).toBe('tool_calls')
  expect(streamed.choices[0].message.tool_calls).toMatchObject([
    { type: 'function', function: { name: call.function.name, arguments: call.function.arguments } },
  ])
})

test('an aborted stream aborts the worker request, and nothing stays in flight', async () => {
  slow.script(
    'POST /v1/chat/completions',
    sseAnswer([...chatChunks('slow', ['a', 'b']).slice(0, 3), { hang: true }]),
  )
  const stream = await client.chat.completions.create({ model: 'slow', messages, stream: true })
  let abortedAtMs = 0
  let seen = 0
  for await (const _ of stream) {
    seen += 1
    if (seen < 3) continue
    expect((await gateway.loads(BEARER))[slow.url]).toBe(1)
    abortedAtMs = performance.now()
    stream.controller.abort()
  }
  const request = await slow.received('POST /v1/chat/completions')
  await request.closed
  expect(request.isAborted).toBe(true)
  // Plus the delays of a loaded machine; `relay.test.ts` checks the 100 ms.
  expect((request.closedAtMs ?? Number.POSITIVE_INFINITY) - abortedAtMs).toBeLessThan(20_000)
  await until(async () => Object.values(await gateway.loads(BEARER)).every((load) => load === 0))
  const samples = [...(await gateway.metrics())].filter(([name]) =>
    name.startsWith('weir_worker_requests_active'),
  )
  expect(samples.map(([, value]) => value)).toEqual([0, 0])
})

test('completions, streamed or not', async () => {
  const whole = await client.completions.create({ model, prompt: 'Once upon a time' })
  expect(whole.object).toBe('text_completion')
  expect(whole.choices[0].text.length).toBeGreaterThan(20)
  let text = ''
  const stream = await client.completions.create({ model, prompt: 'Once upon a time', stream: true })
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? ''
  expect(text).toBe(whole.choices[0].text)
})

test('embeddings, as numbers and in the base64 default of the client', async () => {
  const numbers = await client.embeddings.create({ model, input: ['one', 'two'], encoding_format: 'float' })
  const packed = await client.embeddings.create({ model, input: ['one', 'two'] })
  expect(numbers.data.map(({ index }) => index)).toEqual([0, 1])
  expect(packed.data).toHaveLength(2)
  for (const [place, { embedding }] of packed.data.entries()) {
    expect(embedding).toHaveLength(64)
    for (const [at, value] of embedding.entries())
      expect(value).toBeCloseTo(numbers.data[place].embedding[at], 5)
  }
  expect(numbers.usage.prompt_tokens).toBeGreaterThan(0)
})

test('the model list has every model once', async () => {
  const ids = (await client.models.list()).data.map(({ id }) => id)
  expect(ids.sort()).toEqual([model, 'slow'])
})

test('a wrong key is an AuthenticationError, an unknown model a NotFoundError', async () => {
  const unauthenticated = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-wrong', maxRetries: 0 })
  const refused = await unauthenticated.chat.completions
    .create({ model, messages })
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(AuthenticationError)
  expect(refused).toMatchObject({ status: 401, type: 'authentication_error' })

  const lost = await client.chat.completions
    .create({ model: 'missing', messages })
    .catch((error: unknown) => error)
  expect(lost).toBeInstanceOf(NotFoundError)
  expect(lost).toMatchObject({ status: 404, code: 'model_not_found', type: 'not_found_error' })
})
