/** Generations over HTTP chat workers: events, retries, errors, client disconnects. */

import { expect, test } from 'vitest'
import type { GenerationEvent, GenerationRequest } from '#kernel'
import { Generations } from '#kernel'
import type { Host, RouteDefinition } from '../../kernel/index.ts'
import { apiErrorFormat, definePlugin, Type } from '../../kernel/index.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { breachesOf } from '../support/generation-grammar.ts'
import { jsonAnswer, rawAnswer, type Script, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'

/** A client format with one route: the body's `text` becomes a chat, and its events become lines of JSON. */
function lineFront(seen: GenerationEvent[] = []) {
  const route = (host: Host): RouteDefinition => ({
    method: 'POST',
    path: '/lines',
    access: 'api',
    errors: apiErrorFormat,
    endpoint: 'lines',
    docs: { summary: 'lines', tag: 'test', responses: {} },
    handler: (ctx) => {
      const { text, stream = true } = ctx.bodyJson() as { text: string; stream?: boolean }
      const lines: string[] = []
      host.use(Generations).open(ctx, requestOf(text), {
        stream,
        listener: {
          onEvent: (event) => {
            seen.push(event)
            if (event.type === 'failed') ctx.fail(event.error)
            else {
              lines.push(JSON.stringify('worker' in event ? { ...event, worker: event.worker?.url } : event))
              if (event.type === 'finished') ctx.text(200, lines.join('\n'))
            }
          },
        },
      })
    },
  })
  return definePlugin({
    manifest: {
      name: 'line-front',
      version: '0.1.0',
      description: 'test',
      uses: [Generations],
      config: Type.Object({}, { additionalProperties: false }),
    },
    register: (host) => host.route(route(host)),
  })
}

function requestOf(text: string): GenerationRequest {
  return {
    model: 'test-model',
    prompt: { kind: 'chat', messages: [{ role: 'user', content: text }] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: { maxTokens: 9 },
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  }
}

const chunk = (delta: unknown, reason: string | null = null) =>
  JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const WHOLE_STREAM = [chunk({ content: 'he' }), chunk({ content: 'llo' }), chunk({}, 'stop'), '[DONE]']

async function open(scripts: readonly Script[], kernel: Record<string, unknown> = {}) {
  const seen: GenerationEvent[] = []
  const fleet = await openFleet({
    workers: scripts.map(() => ({})),
    plugins: {},
    own: [lineFront(seen)],
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1 }, ...kernel },
  })
  for (const [index, script] of scripts.entries()) fleet.workers[index].script(CHAT, script)
  return { ...fleet, seen }
}

test('stream chunks become generation events, and the worker gets the internal request as a chat body', async () => {
  const { post, workers } = await open([sseAnswer(WHOLE_STREAM)])
  const reply = await post('/lines', { text: 'hi' })
  const events = (await reply.text()).split('\n').map((line) => JSON.parse(line) as GenerationEvent)
  expect(events.map(({ type }) => type)).toEqual(['started', 'text', 'text', 'choice_done', 'finished'])
  expect(workers[0].requestsTo(CHAT)[0].json()).toEqual({
    model: 'test-model',
    messages: [{ role: 'user', content: 'hi' }],
    max_tokens: 9,
    stream: true,
    stream_options: { include_usage: true },
  })
})

test('a worker may respond non-streamed to a streamed request, and the other way round', async () => {
  const whole = { choices: [{ index: 0, message: { content: 'hello' }, finish_reason: 'stop' }] }
  for (const [script, stream] of [
    [jsonAnswer(whole), true],
    [sseAnswer(WHOLE_STREAM), false],
  ] as const) {
    const { post } = await open([script])
    const text = await (await post('/lines', { text: 'hi', stream })).text()
    const said = text.split('\n').map((line) => (JSON.parse(line) as { delta?: string }).delta ?? '')
    expect(said.join('')).toBe('hello')
  }
})

test("an error response keeps the worker's status, message, code and Retry-After", async () => {
  const error = { message: 'too long', code: 'context_length_exceeded', param: 'messages' }
  const { post } = await open([jsonAnswer({ error }, { status: 413, headers: { 'retry-after': '7' } })])
  const reply = await post('/lines', { text: 'hi' })
  expect([reply.status, reply.headers.get('retry-after')]).toEqual([413, '7'])
  expect(await reply.json()).toMatchObject({ error: { ...error, type: 'invalid_request_error' } })
})

test('a request is retried on another worker if the first event is an error; later errors are reported', async () => {
  const failing = sseAnswer(['{"error":{"message":"no memory"}}'])
  const { post, workers } = await open([failing, failing])
  workers[1].script(CHAT, sseAnswer(WHOLE_STREAM))
  for (let i = 0; i < 4; i++) expect((await post('/lines', { text: 'hi' })).status).toBe(200)
  for (const worker of workers) worker.script(CHAT, sseAnswer([WHOLE_STREAM[0], '{"error":"broken"}']))
  const broken = await post('/lines', { text: 'hi' })
  expect([broken.status, ((await broken.json()) as { error: { code: string } }).error.code]).toEqual([
    502,
    'worker_stream_failed',
  ])
})

test('a response that stops before its end fails', async () => {
  const endings: Script[] = [
    sseAnswer([WHOLE_STREAM[0]]),
    streamAnswer(['data: {"choices":['], { headers: { 'content-type': 'text/event-stream' } }),
  ]
  for (const ending of endings) {
    const { post, seen } = await open([ending], { retry: { maxAttempts: 1 } })
    expect((await post('/lines', { text: 'hi' })).status).toBe(502)
    expect(seen.at(-1)?.type).toBe('failed')
  }
})

test.each([true, false])('a response that is nested too deeply fails, streamed: %s', async (stream) => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  const annotated = `{"annotations":[{"type":"url_citation","url_citation":${deep}}]}`
  const choice = (member: string) => `{"choices":[{"index":0,"${member}":${annotated}}]}`
  const script = stream
    ? sseAnswer([choice('delta'), '[DONE]'])
    : rawAnswer(choice('message'), { headers: { 'content-type': 'application/json' } })
  const { post, seen } = await open([script], { retry: { maxAttempts: 1 } })
  const reply = await post('/lines', { text: 'hi', stream })
  expect(reply.status).toBe(502)
  expect(await reply.json()).toMatchObject({ error: { code: 'engine_unreadable' } })
  expect(seen.at(-1)?.type).toBe('failed')
})

test.each(['text', 'choice_done', 'finished'] as const)(
  'an exception in the handler of the event %s fails the request',
  async (type) => {
    const { post, seen } = await open([sseAnswer(WHOLE_STREAM)], { retry: { maxAttempts: 1 } })
    seen.push = (event) => {
      if (event.type === type) throw new RangeError('no room')
      return Array.prototype.push.call(seen, event)
    }
    const reply = await post('/lines', { text: 'hi' })
    expect(reply.status).toBe(502)
    expect(await reply.json()).toMatchObject({ error: { code: 'engine_unreadable' } })
    expect(seen.at(-1)?.type).toBe('failed')
  },
)

test('a client disconnect closes the upstream request, and no request stays in flight', async () => {
  const { gateway, workers, seen } = await open([sseAnswer([WHOLE_STREAM[0], { hang: true }])])
  const controller = new AbortController()
  const asked = fetch(`${gateway.url}/lines`, {
    method: 'POST',
    body: JSON.stringify({ text: 'hi' }),
    signal: controller.signal,
  }).catch(() => null)
  await expect.poll(() => seen.length).toBeGreaterThan(1)
  controller.abort()
  await asked
  await workers[0].requestsTo(CHAT)[0].closed
  expect(workers[0].requestsTo(CHAT)[0].isAborted).toBe(true)
  expect(seen.at(-1)?.type).toBe('text')
})

test('the simulated engine returns the reasoning, text, calls, finish reason and usage that a test sets', async () => {
  const seen: GenerationEvent[] = []
  const port = await freePort()
  const engine = `http://127.0.0.1:${port}`
  const gateway = await startGateway({
    own: [lineFront(seen)],
    plugins: {
      sim: { listen: { port }, models: ['test-model'], ttftMs: 0, itlMs: 0 },
      workers: { urls: [engine] },
    },
    kernel: { auth: 'off' },
  })
  try {
    await expect
      .poll(
        async () => (await fetch(`${gateway.url}/lines`, { method: 'POST', body: '{"text":"x"}' })).status,
        { timeout: 30_000 },
      )
      .toBe(200)
    seen.length = 0
    const answer = {
      reasoning: 'Let me think.',
      text: 'Two calls follow.',
      tool_calls: [
        { name: 'f', arguments: { city: 'Kraków' } },
        { name: 'g', arguments: {} },
      ],
      finish_reason: 'length',
      usage: { completion_tokens_details: { reasoning_tokens: 4 } },
    }
    await fetch(`${engine}/sim/answers`, { method: 'POST', body: JSON.stringify(answer) })
    await fetch(`${gateway.url}/lines`, { method: 'POST', body: '{"text":"x"}' })
    expect(breachesOf(seen)).toEqual([])
    const joined = (type: string) =>
      seen.map((event) => (event.type === type && 'delta' in event ? event.delta : '')).join('')
    expect([joined('reasoning'), joined('text')]).toEqual([answer.reasoning, answer.text])
    expect(seen.filter(({ type }) => type === 'tool_arguments').length).toBeGreaterThan(2)
    expect(seen.find(({ type }) => type === 'choice_done')).toMatchObject({ reason: 'length' })
    expect(seen.at(-1)).toMatchObject({ type: 'finished', usage: { reasoningTokens: 4 } })
  } finally {
    await gateway.stop()
  }
})
