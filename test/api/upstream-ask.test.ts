/** `host.upstream.ask`: a plugin asks a model for a request, or in detached work. */
import { afterEach, expect, test, vi } from 'vitest'
import {
  definePlugin,
  GatewayError,
  type Host,
  type ModelAnswer,
  type ModelQuestion,
  type RequestContext,
  type TokenUsage,
  Type,
} from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  hangAnswer,
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const EMBEDDINGS = 'POST /v1/embeddings'
const CHAT = 'POST /v1/chat/completions'
const VECTOR = {
  data: [{ embedding: [1, 2] }],
  model: 'embed',
  usage: { prompt_tokens: 5, total_tokens: 5 },
}
const CHAT_REPLY = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
}

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of closers.splice(0).reverse()) await close()
})

interface Outcome {
  readonly model: string | null
  readonly usage: TokenUsage | null
}

/** A gateway with a hook that asks; what it was answered, and what was counted. */
async function open(
  question: Partial<ModelQuestion>,
  options: {
    readonly workers?: number
    readonly plugins?: object
    readonly kernel?: object
    /** Credential of the first request, which waits for the workers. */
    readonly readyHeaders?: Record<string, string>
  } = {},
) {
  const embedders: ScriptedWorker[] = []
  for (let count = 0; count < (options.workers ?? 1); count++)
    embedders.push(await startScriptedWorker({ models: ['embed'] }))
  const chats = await startScriptedWorker({ models: ['chat-model'] })
  chats.script(CHAT, jsonAnswer(CHAT_REPLY))
  for (const worker of embedders) worker.script(EMBEDDINGS, jsonAnswer(VECTOR))
  for (const worker of [...embedders, chats]) closers.push(() => worker.close())
  const answers: ModelAnswer[] = []
  const errors: unknown[] = []
  const outcomes: Outcome[] = []
  let host: Host | null = null
  const ask = async (ctx: RequestContext) => {
    const whole = { model: 'embed', path: '/v1/embeddings', body: { input: 'text' }, ...question }
    try {
      answers.push(await (host as Host).upstream.ask(ctx, whole))
    } catch (error) {
      errors.push(error)
      throw error
    }
  }
  const plugin = definePlugin({
    manifest: { name: 'asker', version: '1.0.0', description: 'Asks.', config: Type.Object({}) },
    register(given) {
      host = given
      const routes = ({ path }: { path: string }) => path === '/v1/chat/completions'
      given.hook('onRequest', (ctx) => (ctx.header('x-skip') === undefined ? ask(ctx) : undefined), {
        scope: 'all',
        headers: ['x-skip'],
        routes,
      })
      given.hook('onDone', ({ model, usage }) => void outcomes.push({ model, usage }), {
        scope: 'all',
        routes,
      })
    },
  })
  const gateway = await startGateway({
    own: [plugin],
    kernel: { auth: 'off', retry: { initialBackoffMs: 1, maxBackoffMs: 1 }, ...options.kernel },
    plugins: {
      chat: {},
      workers: {
        workers: [
          ...embedders.map(({ url }) => ({ url, models: [{ id: 'embed', aliases: ['vectors'] }] })),
          { url: chats.url, models: [{ id: 'chat-model' }] },
        ],
      },
      ...options.plugins,
    },
  })
  closers.push(() => gateway.stop())
  await expect
    .poll(async () => (await chat(gateway, { 'x-skip': '1', ...options.readyHeaders })).status)
    .toBe(200)
  outcomes.length = 0
  return { gateway, embedders, answers, errors, outcomes, ask, host: () => host as unknown as Host }
}

const chat = ({ url }: TestGateway, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'chat-model', messages: [{ role: 'user', content: 'hi' }] }),
    signal,
  })

test('the answer is parsed, its tokens count for the request, and the request keeps its model', async () => {
  const { gateway, embedders, answers, outcomes } = await open({ model: 'vectors' })
  const response = await chat(gateway)
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject(CHAT_REPLY)
  expect(answers).toEqual([{ status: 200, body: VECTOR }])
  expect(embedders[0].requestsTo(EMBEDDINGS)[0].json()).toEqual({ input: 'text', model: 'embed' })
  await expect.poll(() => outcomes.length).toBe(1)
  expect(outcomes[0]).toMatchObject({ model: 'chat-model', usage: { input: 8, output: 2 } })
})

test('a failing worker is retried on another; an error status resolves', async () => {
  const { gateway, embedders, answers } = await open({}, { workers: 2 })
  let count = 0
  const busyFirst = () =>
    count++ === 0 ? jsonAnswer({ detail: 'busy' }, { status: 503 }) : jsonAnswer(VECTOR)
  for (const worker of embedders) worker.script(EMBEDDINGS, busyFirst)
  expect((await chat(gateway)).status).toBe(200)
  expect(embedders.map((worker) => worker.requestsTo(EMBEDDINGS).length)).toEqual([1, 1])
  expect(answers.at(-1)).toEqual({ status: 200, body: VECTOR })
  for (const worker of embedders)
    worker.script(EMBEDDINGS, jsonAnswer({ detail: 'bad input' }, { status: 422 }))
  await chat(gateway)
  expect(answers.at(-1)).toEqual({ status: 422, body: { detail: 'bad input' } })
})

test.each([
  [rawAnswer('not json'), {}, 'ask_response_invalid'],
  [jsonAnswer({ long: 'x'.repeat(1_000) }), { maxBytes: 100 }, 'read_response_body_failed'],
  [jsonAnswer(VECTOR), { model: 'unknown-model' }, 'model_not_found'],
  [jsonAnswer(VECTOR), { api: 'messages' }, 'no_available_workers'],
] as const)('an unusable answer rejects (%#)', async (answer, question, code) => {
  const { gateway, embedders, errors } = await open(question)
  embedders[0].script(EMBEDDINGS, answer)
  const response = await chat(gateway)
  expect(response.status).toBeGreaterThanOrEqual(400)
  expect(errors[0]).toBeInstanceOf(GatewayError)
  expect((errors[0] as GatewayError).code).toBe(code)
})

test('a client that disconnects aborts the call', async () => {
  const { gateway, embedders, errors } = await open({})
  embedders[0].script(EMBEDDINGS, hangAnswer())
  const leaving = new AbortController()
  const pending = chat(gateway, {}, leaving.signal).catch(() => null)
  const asked = await embedders[0].received(EMBEDDINGS)
  leaving.abort()
  await pending
  await asked.closed
  expect(asked.isAborted).toBe(true)
  await expect.poll(() => errors.length).toBe(1)
})

test('detached work asks without a client; a request that has ended cannot', async () => {
  const { answers, ask, host } = await open({})
  let kept: RequestContext | null = null
  const work = host().detached({
    route: { method: 'POST', path: '/v1/chat/completions' },
    identity: null,
    headers: ['x-skip', '1'],
    run: async (ctx) => {
      kept = ctx
      await ask(ctx)
      ctx.json(200, {})
    },
  })
  expect(await work.done).toMatchObject({ status: 200 })
  expect(answers).toEqual([{ status: 200, body: VECTOR }])
  await expect(ask(kept as unknown as RequestContext)).rejects.toMatchObject({ code: 'ask_after_end' })
})

test('a virtual model is resolved, and the response of the request does not name its target', async () => {
  const models = { 'any-vectors': { targets: [{ model: 'embed', parameters: { dimensions: 8 } }] } }
  const { gateway, embedders } = await open(
    { model: 'any-vectors' },
    { plugins: { 'virtual-models': { models } } },
  )
  const response = await chat(gateway)
  expect(response.status).toBe(200)
  expect(response.headers.get('x-weir-model')).toBeNull()
  const [asked] = embedders[0].requestsTo(EMBEDDINGS)
  expect(asked.json()).toEqual({ input: 'text', model: 'embed', dimensions: 8 })
})

test('the tokens count against the limit of the tenant, whose key need not allow the model', async () => {
  // Buckets refill by this clock.
  vi.spyOn(process.hrtime, 'bigint').mockReturnValue(process.hrtime.bigint())
  const keys = [{ id: 'a', key: 'key-a', tenant: 'a', models: ['chat-model'] }]
  const { gateway } = await open(
    {},
    {
      kernel: { auth: 'required' },
      plugins: {
        auth: { keys, apiKey: 'root-key' },
        limits: { tenants: { default: { tokensPerMinute: 1_000 } } },
      },
      readyHeaders: { authorization: 'Bearer root-key' },
    },
  )
  const before = await left(gateway)
  expect((await chat(gateway, { authorization: 'Bearer key-a' })).status).toBe(200)
  // 5 of the embedding, 5 of the chat.
  expect(before - (await left(gateway))).toBe(10)
})

/** Tokens that tenant a has left. */
async function left({ url }: TestGateway): Promise<number> {
  const response = await fetch(`${url}/limits?tenant=auth:a`, {
    headers: { authorization: 'Bearer root-key' },
  })
  const { use } = (await response.json()) as { use: { tenant: { left: number }[] } | undefined }
  return use?.tenant[0]?.left ?? 1_000
}
