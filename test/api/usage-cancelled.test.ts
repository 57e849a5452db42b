/** Usage of streams that end before the worker has reported it: counted by the tokenizer of the model, else estimated. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { definePlugin, type TokenUsage, Type } from '#kernel'
import { parsePrometheusText } from '#shared'
import { type StreamStep, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const ADMIN = { authorization: 'Bearer admin-key' }
const A = { authorization: 'Bearer key-a' }
const CHAT = '/v1/chat/completions'
const WORDS = ['Hello', ' there', ', ', 'world', ' and', ' more', ' of', ' the', ' same']
const TEXT = WORDS.join('')
const user = [{ role: 'user', content: 'Tell me more, please, of the whole world.' }]
/** Of the translated request: text, by four bytes per token. */
const TEXT_TOKENS = Math.ceil(user[0].content.length / 4)

const piece = (delta: object) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })
const ROLE = piece({ role: 'assistant', content: '' })
const PIECES: readonly StreamStep[] = [ROLE, ...WORDS.map((content) => piece({ content }))]
const HANG = { hang: true } as const

/** Usage of each generation as its request ends. */
const seen: (TokenUsage | null)[] = []
const observer = definePlugin({
  manifest: { name: 'usage-observer', version: '0.1.0', description: 'Test.', config: Type.Object({}) },
  register(host) {
    host.hook('onDone', (ctx) => void (ctx.model !== null && seen.push(ctx.usage)), {
      scope: 'all',
      routes: ({ access }) => access === 'api',
    })
  },
})

let dir: string
beforeEach(() => {
  seen.splice(0)
  dir = mkdtempSync(join(tmpdir(), 'weir-usage-cancelled-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

async function open(more: object = {}, spec: object = {}): Promise<Fleet> {
  const fleet = await openFleet({
    own: [observer],
    plugins: {
      auth: { apiKey: 'admin-key', tenantKeys: ['a:key-a'] },
      storage: { dir: join(dir, 'data') },
      usage: {},
      history: {},
      messages: {},
      responses: {},
      ...more,
    },
    workers: [{ spec: { apis: ['chat', 'completions'], ...spec } }],
  })
  fleet.workers[0].script(`POST ${CHAT}`, sseAnswer([...PIECES, HANG]))
  if ('tokenizers' in more)
    await vi.waitFor(
      async () =>
        expect((await fleet.post('/v1/tokenize', { model: 'test-model', prompt: 'x' }, A)).status).toBe(200),
      60_000,
    )
  return fleet
}

const TOKENIZER = { tokenizers: { load: [{ name: 'test-model', source: 'weir:sample' }] } }

/** Sends a request, reads until the text has arrived, and disconnects. @returns length of the body in bytes */
async function cancel(fleet: Fleet, path: string, body: object, until = ' same'): Promise<number> {
  const sent = JSON.stringify({ model: 'test-model', stream: true, ...body })
  const leave = new AbortController()
  const response = await fetch(fleet.gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...A },
    body: sent,
    signal: leave.signal,
  })
  expect(response.status).toBe(200)
  const reader = response.body?.getReader()
  let text = ''
  while (!text.includes(until)) {
    const read = await reader?.read()
    if (read?.done !== false) throw new Error(`the stream ended: ${text}`)
    text += Buffer.from(read.value).toString()
  }
  leave.abort()
  return Buffer.byteLength(sent)
}

async function total(fleet: Fleet): Promise<object> {
  const reply = await fleet.get('/usage', ADMIN)
  return ((await reply.json()) as { total: object }).total
}
const expectTotal = (fleet: Fleet, expected: object) =>
  vi.waitFor(async () => expect(await total(fleet)).toMatchObject(expected), 10_000)

/** Tokens of the prompt and of the text, by the routes of the gateway. */
async function counted(
  fleet: Fleet,
  only?: 'tokenize',
): Promise<{ input_tokens: number; output_tokens: number }> {
  const ask = { model: 'test-model', max_tokens: 9, messages: user }
  const prompt = only === undefined ? await fleet.post('/v1/messages/count_tokens', ask, A) : null
  const text = await fleet.post('/v1/tokenize', { model: 'test-model', prompt: TEXT }, A)
  const { input_tokens } = ((await prompt?.json()) ?? { input_tokens: 0 }) as { input_tokens: number }
  const { count } = (await text.json()) as { count: number }
  // Otherwise exact counts and estimates could not be told apart.
  expect(count).not.toBe(WORDS.length)
  return { input_tokens, output_tokens: count }
}

const REQUESTS: readonly (readonly [name: string, path: string, body: object])[] = [
  ['relayed', CHAT, { messages: user }],
  ['translated from Messages', '/v1/messages', { max_tokens: 99, messages: user }],
  ['translated from Responses', '/v1/responses', { input: user[0].content }],
]

describe.each(REQUESTS)('%s', (name, path, body) => {
  test('cancelled, without a tokenizer: one token per event, and a quarter of the bytes of the prompt', async () => {
    const fleet = await open()
    const bytes = await cancel(fleet, path, body)
    const input_tokens = name === 'relayed' ? Math.ceil(bytes / 4) : TEXT_TOKENS
    await expectTotal(fleet, { requests: 1, input_tokens, output_tokens: WORDS.length })
    expect(seen).toMatchObject([{ output: WORDS.length, isEstimated: true }])
  })

  test('cancelled, with a tokenizer: exact', async () => {
    const fleet = await open(TOKENIZER)
    const exact = await counted(fleet)
    await cancel(fleet, path, body)
    await expectTotal(fleet, { requests: 1, ...exact })
  })

  test('broken off', async () => {
    const fleet = await open(TOKENIZER)
    const exact = await counted(fleet)
    fleet.workers[0].once(`POST ${CHAT}`, sseAnswer([...PIECES, { waitMs: 20 }, { drop: 'reset' }]))
    const response = await fleet.post(path, { model: 'test-model', stream: true, ...body }, A)
    await response.text().catch(() => undefined)
    await expectTotal(fleet, { requests: 1, ...exact })
  })
})

describe('streams in the format of the worker', () => {
  const event = (data: { readonly type: string } & Record<string, unknown>) =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const sse = (steps: readonly StreamStep[]) =>
    streamAnswer(steps, { headers: { 'content-type': 'text/event-stream' } })
  const delta = (text: string) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text },
  })
  const start = (usage: object) => ({ type: 'message_start', message: { role: 'assistant', usage } })

  test.each([
    ['estimated', {}],
    ['counted', TOKENIZER],
  ])('Messages: the input as the worker reported it, the output %s', async (_name, more) => {
    const fleet = await open(more, { apis: ['messages'] })
    const { output_tokens } =
      more === TOKENIZER ? await counted(fleet, 'tokenize') : { output_tokens: WORDS.length }
    fleet.workers[0].script(
      'POST /v1/messages',
      sse([
        event(start({ input_tokens: 5, cache_read_input_tokens: 6, output_tokens: 1 })),
        ...WORDS.map((word) => event(delta(word))),
        HANG,
      ]),
    )
    await cancel(fleet, '/v1/messages', { max_tokens: 99, messages: user })
    await expectTotal(fleet, { requests: 1, input_tokens: 11, cached_tokens: 6, output_tokens })
  })

  test('Responses: the output is counted', async () => {
    const fleet = await open(TOKENIZER, { apis: ['responses'] })
    const { output_tokens } = await counted(fleet, 'tokenize')
    fleet.workers[0].script(
      'POST /v1/responses',
      sse([
        event({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress', usage: null } }),
        ...WORDS.map((word) =>
          event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: word }),
        ),
        HANG,
      ]),
    )
    await cancel(fleet, '/v1/responses', { input: user[0].content, store: false })
    await expectTotal(fleet, { requests: 1, output_tokens })
  })
})

describe('relayed chat', () => {
  const usage = (completion_tokens: number) => ({ prompt_tokens: 3, completion_tokens })

  test('counts in every chunk are not estimated again', async () => {
    const fleet = await open(TOKENIZER)
    const chunks = WORDS.map((content, at) =>
      JSON.stringify({ choices: [{ index: 0, delta: { content } }], usage: usage(at + 1) }),
    )
    fleet.workers[0].script(`POST ${CHAT}`, sseAnswer([...chunks, HANG]))
    await cancel(fleet, CHAT, { messages: user, stream_options: { include_usage: true } })
    await expectTotal(fleet, { requests: 1, input_tokens: 3, output_tokens: WORDS.length })
    expect(seen).toEqual([{ input: 3, output: WORDS.length, cached: 0, reasoning: 0 }])
  })

  test('a client that disconnects after the usage of the worker pays that', async () => {
    const fleet = await open(TOKENIZER)
    const last = JSON.stringify({ choices: [], usage: usage(7) })
    fleet.workers[0].script(`POST ${CHAT}`, sseAnswer([...PIECES, last, piece({ content: 'END' }), HANG]))
    await cancel(fleet, CHAT, { messages: user }, 'END')
    await expectTotal(fleet, { requests: 1, input_tokens: 3, output_tokens: 7 })
  })

  test('a worker without counts', async () => {
    const fleet = await open(TOKENIZER)
    const exact = await counted(fleet)
    fleet.workers[0].script(`POST ${CHAT}`, sseAnswer([...PIECES, '[DONE]']))
    const body = { model: 'test-model', stream: true, messages: user }
    await (await fleet.post(CHAT, body, A)).text()
    await expectTotal(fleet, { requests: 1, ...exact })
  })

  test('nothing before the first output', async () => {
    const fleet = await open(TOKENIZER)
    fleet.workers[0].script(`POST ${CHAT}`, sseAnswer([ROLE, HANG]))
    await cancel(fleet, CHAT, { messages: user }, 'assistant')
    await vi.waitFor(() => expect(seen).toEqual([null]))
    expect(await total(fleet)).toMatchObject({ requests: 0 })
  })

  test('a prompt above 1 MiB is estimated, the text is counted', async () => {
    const fleet = await open(TOKENIZER)
    const { output_tokens } = await counted(fleet)
    const bytes = await cancel(fleet, CHAT, {
      messages: user,
      padding: 'x'.repeat(1_048_576),
    })
    await expectTotal(fleet, { requests: 1, input_tokens: Math.ceil(bytes / 4), output_tokens })
  })

  test('the end of a text above 256 KiB is extrapolated', async () => {
    const fleet = await open(TOKENIZER)
    const { output_tokens } = await counted(fleet)
    const rounds = 2_000
    const pieces = WORDS.map((content) => `data: ${piece({ content })}\n\n`).join('')
    fleet.workers[0].script(
      `POST ${CHAT}`,
      streamAnswer([...Array(rounds).fill(pieces), `data: ${piece({ content: 'END' })}\n\n`, HANG], {
        headers: { 'content-type': 'text/event-stream' },
      }),
    )
    await cancel(fleet, CHAT, { messages: user }, 'END')
    const expected = rounds * output_tokens
    await vi.waitFor(async () => {
      const { output_tokens: found } = (await total(fleet)) as { output_tokens: number }
      expect(Math.abs(found / expected - 1)).toBeLessThan(0.02)
      expect(found).not.toBe(rounds * WORDS.length)
    }, 60_000)
  })

  test('metrics count each token once, as the tokenizer counts it', async () => {
    const fleet = await open({ ...TOKENIZER, metrics: {} })
    const { output_tokens } = await counted(fleet)
    await cancel(fleet, CHAT, { messages: user })
    await vi.waitFor(async () => {
      const text = await (await fetch(fleet.gateway.metricsUrl ?? '')).text()
      const family = parsePrometheusText(text).find(({ name }) => name === 'weir_tenant_tokens_total')
      const sample = family?.samples.find(({ labels }) => labels.get('token_type') === 'output')
      expect(sample?.value).toBe(String(output_tokens))
    }, 60_000)
  })
})

describe('budgets', () => {
  test.each([
    ['estimates', {}],
    ['exact counts', TOKENIZER],
  ])('a client that always cancels reaches its budget, with %s', async (_name, more) => {
    const fleet = await open({ ...more, usage: { budgets: [{ tenant: 'auth:a', tokens: 100 }] } })
    const body = { model: 'test-model', stream: true, messages: user }
    let cancelled = 0
    for (; cancelled < 20; cancelled++) {
      const probe = await fleet.post('/v1/completions', { model: 'test-model', prompt: '' }, A)
      await probe.text()
      if (probe.status === 429) break
      await cancel(fleet, CHAT, body)
      await vi.waitFor(() => expect(seen.length).toBeGreaterThan(cancelled))
    }
    expect(cancelled).toBeGreaterThan(1)
    expect(cancelled).toBeLessThan(10)
    const refused = await fleet.post(CHAT, body, A)
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { error: { code: 'budget_exceeded' } },
    ])
    if (more !== TOKENIZER) return
    const ask = { model: 'test-model', input: 'hi' }
    expect((await fleet.post('/v1/responses/input_tokens', ask, A)).status).toBe(200)
    expect((await fleet.post('/v1/responses', ask, A)).status).toBe(429)
  })
})
