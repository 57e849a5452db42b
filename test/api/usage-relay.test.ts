/** Token usage of relayed requests: equal to the worker's own counts, on every lane, whole, streamed, cancelled and retried. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { definePlugin, type TokenUsage, Type } from '#kernel'
import { parsePrometheusText } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  jsonAnswer,
  type RecordedRequest,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'

let worker: ScriptedWorker
/** Reports the usage of each choice apart. */
let llama: ScriptedWorker
let gateway: TestGateway
/** Usage of each finished request. */
const seen: (TokenUsage | null)[] = []
const models: (string | null)[] = []

const observer = definePlugin({
  manifest: { name: 'usage-observer', version: '0.1.0', description: 'Test.', config: Type.Object({}) },
  register(host) {
    host.hook(
      'onDone',
      (ctx) => {
        seen.push(ctx.usage)
        models.push(ctx.model)
      },
      { scope: 'all', routes: ({ access }) => access === 'api' },
    )
  },
})

beforeAll(async () => {
  worker = await startScriptedWorker({
    models: ['m'],
    describes: ['/v1/chat/completions', '/v1/completions', '/v1/messages', '/v1/embeddings', '/generate'],
  })
  llama = await startScriptedWorker({ models: ['llama'] })
  gateway = await startGateway({
    own: [observer],
    kernel: { retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 2 } },
    plugins: {
      auth: {},
      health: {},
      policies: {},
      chat: {},
      messages: {},
      workers: {
        workers: [
          {
            url: worker.url,
            models: [{ id: 'm', aliases: ['alias'] }],
            apis: ['chat', 'completions', 'messages', 'generate', 'embeddings'],
          },
          { url: llama.url, models: [{ id: 'llama' }], runtime_type: 'llamacpp', priority: 10 },
        ],
      },
    },
  })
  await vi.waitFor(async () => expect((await fetch(`${gateway.url}/readiness`)).status).toBe(200), 20_000)
})
afterAll(async () => {
  await gateway.stop()
  await worker.close()
  await llama.close()
})
beforeEach(() => void seen.splice(0))
afterEach(() => worker.requests.splice(0))

const post = (path: string, body: object, init: RequestInit = {}) =>
  fetch(`${gateway.url}${path}`, { method: 'POST', body: JSON.stringify(body), ...init })
const counted = async (): Promise<TokenUsage | null> => {
  await vi.waitFor(() => expect(seen).toHaveLength(1), 5_000)
  return seen[0]
}

const OPENAI = {
  prompt_tokens: 11,
  completion_tokens: 5,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 2 },
}
const USED = { input: 11, output: 5, cached: 8, reasoning: 2 }
const DONE = '[DONE]'
const piece = (content: string) => JSON.stringify({ choices: [{ index: 0, delta: { content } }] })
const usageChunk = JSON.stringify({ choices: [], usage: OPENAI })

/** An engine that reports usage only if it is asked. */
function chatStream({ body }: RecordedRequest) {
  const isAsked = JSON.parse(body.toString()).stream_options?.include_usage === true
  return sseAnswer([piece('a'), piece('b'), ...(isAsked ? [usageChunk] : []), DONE])
}

test.each(['/v1/chat/completions', '/v1/completions'])('%s: a whole response', async (path) => {
  worker.script(
    `POST ${path}`,
    jsonAnswer({ choices: [{ text: 'x' }], usage: OPENAI, prompt_logprobs: null }),
  )
  await (await post(path, { model: 'm', messages: [] })).text()
  expect(await counted()).toEqual(USED)
})

test.each(['/v1/chat/completions', '/v1/completions'])(
  '%s: a stream whose client did not ask: the worker is asked, and the client gets no usage',
  async (path) => {
    worker.script(`POST ${path}`, chatStream)
    const sent = { model: 'alias', stream: true, messages: [{ content: 'stream_options' }] }
    const text = await (await post(path, sent)).text()
    expect(text).toBe(`data: ${piece('a')}\n\ndata: ${piece('b')}\n\ndata: [DONE]\n\n`)
    expect(await counted()).toEqual(USED)
    const [request] = worker.requestsTo(`POST ${path}`)
    expect(request.json()).toEqual({ ...sent, model: 'm', stream_options: { include_usage: true } })
  },
)

test('a stream whose client asked passes unchanged', async () => {
  worker.script('POST /v1/chat/completions', chatStream)
  const sent = { model: 'm', stream: true, stream_options: { include_usage: true }, messages: [] }
  const text = await (await post('/v1/chat/completions', sent)).text()
  expect(text).toContain(usageChunk)
  expect(await counted()).toEqual(USED)
  expect(worker.requestsTo('POST /v1/chat/completions')[0].body.toString()).toBe(JSON.stringify(sent))
})

describe('an engine that reports each choice apart: clients and counters get the sum', () => {
  const CHAT = '/v1/chat/completions'
  const messages = [{ role: 'user', content: 'hi' }]
  const first = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }
  const second = { ...first, completion_tokens: 5, total_tokens: 15 }
  const usageOf = (usage: object) => JSON.stringify({ choices: [], usage })
  const endOf = (index: number, content: string) =>
    JSON.stringify({ choices: [{ index, delta: { content }, finish_reason: 'length' }] })
  const SUM = { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 }

  function answer(text: string): void {
    llama.script(
      `POST ${CHAT}`,
      sseAnswer([endOf(0, text), usageOf(first), endOf(1, text), usageOf(second), DONE]),
    )
  }

  test.each([1, 700_000])('two choices of %i characters, whole', async (length) => {
    answer('a'.repeat(length))
    const response = await post(CHAT, { model: 'llama', n: 2, messages })
    const { choices, usage } = (await response.json()) as { choices: unknown[]; usage: object }
    expect([choices.length, usage]).toEqual([2, SUM])
    expect(await counted()).toEqual({ input: 10, output: 9, cached: 0, reasoning: 0 })
  })

  test.each([{}, { stream_options: { include_usage: true } }])('streamed, with %j', async (options) => {
    answer('a')
    const text = await (await post(CHAT, { model: 'llama', n: 2, stream: true, messages, ...options })).text()
    const usages = [...text.matchAll(/"usage":(\{.*?\})/g)].map(([, usage]) => JSON.parse(usage))
    expect(usages).toEqual('stream_options' in options ? [SUM] : [])
    expect(await counted()).toEqual({ input: 10, output: 9, cached: 0, reasoning: 0 })
  })

  test('a list of prompts: each is a request', async () => {
    llama.script('POST /v1/completions', (request) => {
      const { prompt } = request.json() as { prompt: unknown }
      expect(typeof prompt).toBe('string')
      return jsonAnswer({ choices: [{ index: 0, text: 'a', finish_reason: 'length' }], usage: first })
    })
    const response = await post('/v1/completions', { model: 'llama', prompt: ['12345', '1234567890'] })
    const { choices, usage } = (await response.json()) as { choices: unknown[]; usage: object }
    expect(choices).toHaveLength(2)
    expect(usage).toEqual({ prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 })
    expect(await counted()).toEqual({ input: 20, output: 8, cached: 0, reasoning: 0 })
  })

  test('one choice, or one prompt of token ids, passes unchanged', async () => {
    const body = { choices: [{ index: 0, text: 'a' }], usage: first, timings: {} }
    llama.script('POST /v1/completions', jsonAnswer(body))
    for (const prompt of ['hi', [1, 2, 3]]) {
      expect(await (await post('/v1/completions', { model: 'llama', prompt, n: 1 })).json()).toEqual(body)
      expect(await counted()).toEqual({ input: 10, output: 4, cached: 0, reasoning: 0 })
      seen.splice(0)
    }
  })
})

test('a worker that reports no usage: an estimate', async () => {
  worker.script('POST /v1/chat/completions', jsonAnswer({ choices: [] }))
  await (await post('/v1/chat/completions', { model: 'm', messages: [] })).text()
  expect(await counted()).toEqual({ input: 7, output: 4, cached: 0, reasoning: 0, isEstimated: true })
  seen.splice(0)
  worker.script('POST /v1/chat/completions', sseAnswer([piece('a'), piece('b'), DONE]))
  const body = { model: 'm', stream: true, messages: [] }
  await (await post('/v1/chat/completions', body)).text()
  const input = Math.ceil(JSON.stringify(body).length / 4)
  expect(await counted()).toEqual({ input, output: 2, cached: 0, reasoning: 0, isEstimated: true })
})

test('a stream with an event that is too long to be read: an estimate', async () => {
  worker.script('POST /v1/chat/completions', sseAnswer([piece('x'.repeat(1_200_000)), piece('b'), DONE]))
  const body = { model: 'm', stream: true, messages: [] }
  await (await post('/v1/chat/completions', body)).text()
  const usage = await counted()
  expect(usage?.isEstimated).toBe(true)
  expect(usage?.output).toBeGreaterThan(300_000)
})

test('a cancelled stream counts what the worker has reported so far', async () => {
  const so = (completion_tokens: number) =>
    JSON.stringify({ choices: [{ delta: {} }], usage: { prompt_tokens: 11, completion_tokens } })
  worker.script('POST /v1/chat/completions', sseAnswer([so(1), so(2), { hang: true }]))
  const leave = new AbortController()
  const response = await post(
    '/v1/chat/completions',
    { model: 'm', stream: true, stream_options: { include_usage: true }, messages: [] },
    { signal: leave.signal },
  )
  const reader = response.body?.getReader()
  let text = ''
  while (!text.includes(so(2))) text += Buffer.from((await reader?.read())?.value ?? []).toString()
  leave.abort()
  expect(await counted()).toEqual({ input: 11, output: 2, cached: 0, reasoning: 0 })
})

test('a retried request counts the response that the client got, once', async () => {
  worker.script('POST /v1/chat/completions', jsonAnswer({ choices: [], usage: OPENAI }))
  worker.once('POST /v1/chat/completions', jsonAnswer({ usage: OPENAI }, { status: 503 }))
  expect((await post('/v1/chat/completions', { model: 'm', messages: [] })).status).toBe(200)
  expect(await counted()).toEqual(USED)
})

test('a refused request counts nothing', async () => {
  worker.script('POST /v1/chat/completions', jsonAnswer({ usage: OPENAI }, { status: 400 }))
  await (await post('/v1/chat/completions', { model: 'm', messages: [] })).text()
  expect(await counted()).toBeNull()
})

test('a body of unknown length', async () => {
  const body = JSON.stringify({ choices: [{ text: 'x'.repeat(5_000) }], usage: OPENAI })
  worker.script(
    'POST /v1/chat/completions',
    streamAnswer(
      [body.slice(0, 3_000), { waitMs: 5 }, body.slice(3_000, -50), { waitMs: 5 }, body.slice(-50)],
      {
        headers: { 'content-type': 'application/json' },
      },
    ),
  )
  expect(await (await post('/v1/chat/completions', { model: 'm', messages: [] })).text()).toBe(body)
  expect(await counted()).toEqual(USED)
})

test('a body of unknown length with its usage far before the end, and one without usage', async () => {
  const headers = { 'content-type': 'application/json' }
  const ids = Array.from({ length: 6_000 }, (_, id) => id)
  const body = JSON.stringify({ choices: [], usage: OPENAI, token_ids: ids })
  worker.script('POST /v1/chat/completions', streamAnswer([body], { headers }))
  await (await post('/v1/chat/completions', { model: 'm', messages: [] })).text()
  expect(await counted()).toEqual(USED)
  seen.splice(0)
  worker.script('POST /v1/chat/completions', streamAnswer(['{"choices":[]}'], { headers }))
  await (await post('/v1/chat/completions', { model: 'm', messages: [] })).text()
  expect(await counted()).toEqual({ input: 7, output: 4, cached: 0, reasoning: 0, isEstimated: true })
})

test.each([{ text: 'x' }, { model: 'unknown', text: 'x' }])(
  '%j counts for the model of the worker',
  async (body) => {
    const info = { prompt_tokens: 4, completion_tokens: 6 }
    worker.script('POST /generate', jsonAnswer({ text: 'x', meta_info: info }))
    await (await post('/generate', body)).text()
    await counted()
    expect(models.at(-1)).toBe('m')
  },
)

const MESSAGES_USAGE = { input_tokens: 3, cache_read_input_tokens: 8, output_tokens: 5 }

test('/v1/messages: whole and streamed', async () => {
  const head = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
  worker.script('POST /v1/messages', jsonAnswer({ type: 'message', content: [], usage: MESSAGES_USAGE }))
  await (await post('/v1/messages', head)).text()
  expect(await counted()).toEqual({ input: 11, output: 5, cached: 8, reasoning: 0 })
  seen.splice(0)
  const start = { type: 'message_start', message: { usage: { ...MESSAGES_USAGE, output_tokens: 1 } } }
  const delta = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }
  const events = [start, delta, { type: 'message_stop' }].map((event) => JSON.stringify(event))
  worker.script('POST /v1/messages', sseAnswer(events))
  const text = await (await post('/v1/messages', { ...head, stream: true })).text()
  expect(text).toBe(events.map((event) => `data: ${event}\n\n`).join(''))
  expect(await counted()).toEqual({ input: 11, output: 7, cached: 8, reasoning: 0 })
})

test('/generate and /v1/embeddings', async () => {
  const info = { prompt_tokens: 4, completion_tokens: 6, cached_tokens: 1 }
  worker.script('POST /generate', jsonAnswer({ text: 'x', meta_info: info }))
  await (await post('/generate', { text: 'x' })).text()
  expect(await counted()).toEqual({ input: 4, output: 6, cached: 1, reasoning: 0 })
  seen.splice(0)
  const embedding = { data: [{ embedding: [1] }], usage: { prompt_tokens: 4, total_tokens: 4 } }
  worker.script('POST /v1/embeddings', jsonAnswer(embedding))
  await (await post('/v1/embeddings', { model: 'm', input: 'x' })).text()
  expect(await counted()).toEqual({ input: 4, output: 0, cached: 0, reasoning: 0 })
})

test('metrics count the tokens by model, worker and tenant', async () => {
  const read = async (name: string, labels: Record<string, string>) => {
    const families = parsePrometheusText(await (await fetch(gateway.metricsUrl as string)).text())
    const samples = families.find((family) => family.name === name)?.samples ?? []
    return samples
      .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels.get(key) === value))
      .reduce((sum, { value }) => sum + Number(value), 0)
  }
  const readAll = async () => [
    await read('weir_router_tokens_total', { model: 'm', token_type: 'cached' }),
    await read('weir_worker_tokens_total', { worker: worker.url, token_type: 'input' }),
    await read('weir_tenant_tokens_total', { tenant: 'anonymous', token_type: 'output' }),
  ]
  const before = await readAll()
  worker.script('POST /v1/chat/completions', chatStream)
  await (await post('/v1/chat/completions', { model: 'm', stream: true, messages: [] })).text()
  await counted()
  const after = await readAll()
  expect(after.map((value, at) => value - before[at])).toEqual([8, 11, 5])
})
