/** Streams of workers that stay silent, or whose requests wait for a retry: when they open, and what failures look like. */
import { describe, expect, test } from 'vitest'
import { CHAT } from '../support/chat-script.ts'
import {
  jsonAnswer,
  rawAnswer,
  type Script,
  type StreamStep,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openMessages } from './messages-fleet.ts'
import { openResponses } from './responses/responses-fleet.ts'

const WAITING = ': waiting for the worker\n\n'
const messages = [{ role: 'user', content: 'hi' }]
const head = { 'content-type': 'text/event-stream' }

interface Lane {
  readonly name: string
  readonly path: string
  readonly body: object
  readonly spec?: Record<string, unknown>
  /** Of the worker. */
  readonly route: string
  readonly events: readonly string[]
}

const RELAYED: readonly Lane[] = [
  {
    name: 'chat',
    path: '/v1/chat/completions',
    body: { messages },
    route: CHAT,
    events: [
      'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ],
  },
  {
    name: 'completions',
    path: '/v1/completions',
    body: { prompt: 'hi' },
    route: 'POST /v1/completions',
    events: ['data: {"choices":[{"text":"x","index":0,"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'],
  },
  {
    name: 'messages',
    path: '/v1/messages',
    body: { messages, max_tokens: 9 },
    spec: { runtime_type: 'external', provider: 'anthropic', api_key: 'k' },
    route: 'POST /v1/messages',
    events: ['event: message_stop\ndata: {"type":"message_stop"}\n\n'],
  },
]

describe.each(RELAYED)('a relayed stream of $name', ({ path, body, spec, route, events }) => {
  async function open(script: Script) {
    const { gateway, workers } = await openMessages({
      workers: [{ spec }],
      plugins: { chat: { streamOpensAfterMs: 1 } },
      messages: { pingMs: 1 },
    })
    workers[0].script(route, script)
    return openSse(gateway.url + path, { body: { model: 'test-model', stream: true, ...body } })
  }

  /** Answers once the client has its open stream. */
  function afterOpening(answer: () => ReturnType<typeof streamAnswer>) {
    const opened = Promise.withResolvers<void>()
    return { opened, script: () => opened.promise.then(answer) }
  }

  async function openedBy(answer: () => ReturnType<typeof streamAnswer>) {
    const { opened, script } = afterOpening(answer)
    const stream = await open(script)
    await expect.poll(() => stream.text()).toBe(WAITING)
    opened.resolve()
    await stream.done
    return stream
  }

  test('opens before the head of a silent worker, whose bytes then follow unchanged', async () => {
    const stream = await openedBy(() => streamAnswer(events as StreamStep[], { headers: head }))
    expect([stream.status, stream.isWhole, stream.text()]).toEqual([200, true, WAITING + events.join('')])
  })

  test.each([
    [
      'an error',
      () => jsonAnswer({ error: { message: 'no such thing', code: 'x' } }, { status: 400 }),
      'no such thing',
    ],
    ['an answer that is no stream', () => jsonAnswer({ id: 'a' }), 'without a stream'],
    ['a text', () => rawAnswer('out of order', { status: 500 }), 'out of order'],
  ])('then fails with an error event if the worker sends %s', async (_what, answer, message) => {
    const stream = await openedBy(answer)
    // Every client of the Messages format reads its error events.
    expect([stream.status, stream.isWhole]).toEqual([200, path === '/v1/messages'])
    expect(JSON.parse(stream.events.at(-1)?.data ?? '')).toMatchObject({
      error: { message: expect.stringContaining(message) },
    })
  })
})

describe('a stream whose only worker asks for a longer delay than the stream may stay closed', () => {
  const busy = () =>
    jsonAnswer({ error: { message: 'busy' } }, { status: 429, headers: { 'retry-after': '4' } })

  test.each([
    ['/v1/responses', { input: 'hi' }],
    ['/v1/messages', { messages, max_tokens: 9 }],
    ['/v1/chat/completions', { messages }],
  ])('%s: the status and Retry-After of the worker, without a second request', async (path, body) => {
    const { gateway, workers } = await openResponses(busy, {
      plugins: {
        messages: { pingMs: 3_000 },
        responses: { streamOpensAfterMs: 3_000 },
        chat: { streamOpensAfterMs: 3_000 },
      },
      kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 10_000, maxWaitMs: 10_000 } },
    })
    const stream = openSse(gateway.url + path, { body: { model: 'test-model', stream: true, ...body } })
    await stream.done
    expect([stream.status, stream.headers.get('retry-after')]).toEqual([429, '4'])
    expect(workers[0].requestsTo(CHAT)).toHaveLength(1)
  })
})
