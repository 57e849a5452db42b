/** The `onGeneration` hook: one form of requests and answers for every client format. */
import { expect, test } from 'vitest'
import type { GenerationAnswer, GenerationEvent, Host } from '#kernel'
import { plugin } from '../support/hooked-gateway.ts'
import { CHAT, chatAnswer, openResponses } from './responses/responses-fleet.ts'

const SERVED = { scope: 'all', needsGenerations: true } as const
const messages = [{ role: 'user', content: 'hi' }]

function open(register: (host: Host) => void) {
  return openResponses(chatAnswer('hello'), {
    own: [plugin('hooks', register)],
    plugins: { messages: {} },
  })
}

const REQUESTS = [
  ['/v1/chat/completions', { messages }],
  ['/v1/messages', { messages, max_tokens: 9 }],
  ['/v1/responses', { input: 'hi' }],
] as const

test.each(REQUESTS)('%s: the request is read and changed before a worker gets it', async (path, body) => {
  const prompts: unknown[] = []
  const { post, workers } = await open((host) =>
    host.hook(
      'onGeneration',
      async (_, generation) => {
        prompts.push(generation.request.prompt)
        const prompt = { kind: 'chat', messages: [{ role: 'user', content: 'changed' }] } as const
        generation.request = { ...generation.request, prompt }
      },
      SERVED,
    ),
  )
  const reply = await post(path, { model: 'test-model', ...body })
  expect(reply.status).toBe(200)
  expect(JSON.stringify(prompts)).toContain('hi')
  const [sent] = workers[0].requestsTo(CHAT)
  expect((sent.json() as { messages: unknown }).messages).toEqual([{ role: 'user', content: 'changed' }])
})

test.each(REQUESTS)('%s: a cache answers in place of the worker, streamed or not', async (path, body) => {
  const cache = new Map<string, GenerationEvent[]>()
  const { post, workers } = await open((host) =>
    host.hook(
      'onGeneration',
      (_, generation): GenerationAnswer | undefined => {
        const key = JSON.stringify(generation.request.prompt)
        const known = cache.get(key)
        if (known !== undefined) return known
        const events: GenerationEvent[] = []
        generation.mapEvents((event) => {
          events.push(event.type === 'started' ? { ...event, worker: null } : event)
          if (event.type === 'finished') cache.set(key, events)
          return event
        })
        return undefined
      },
      SERVED,
    ),
  )
  const ask = async (stream: boolean) => {
    const reply = await post(path, { model: 'test-model', stream, ...body })
    expect(reply.status).toBe(200)
    return await reply.text()
  }
  expect(await ask(true)).toContain('hell')
  for (const stream of [false, true]) expect(await ask(stream)).toContain('hell')
  expect(workers[0].requestsTo(CHAT)).toHaveLength(1)
  expect(cache.size).toBe(1)
})

test('events are changed and dropped before the client sees them', async () => {
  const { post } = await open((host) =>
    host.hook(
      'onGeneration',
      (_, generation) =>
        generation.mapEvents((event) => {
          if (event.type !== 'text') return event
          return event.delta === 'o' ? null : { ...event, delta: event.delta.toUpperCase() }
        }),
      SERVED,
    ),
  )
  const reply = await post('/v1/chat/completions', { model: 'test-model', messages, stream: true })
  const text = await reply.text()
  expect(text).toContain('"content":"HELL"')
  expect(text).not.toContain('"content":"o"')
})

test('a rejection has the status of its error, also one that comes late', async () => {
  const { post, workers } = await open((host) =>
    host.hook('onGeneration', () => Promise.reject(new Error('not today')), SERVED),
  )
  for (const stream of [true, false]) {
    const reply = await post('/v1/chat/completions', { model: 'test-model', messages, stream })
    expect(reply.status).toBe(500)
  }
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test.each([
  ...REQUESTS,
  ['/v1/completions', { prompt: ['hi', 'ho'] }],
  ['/generate', { text: 'hi' }],
] as const)(
  '%s: an answer of a hook that never starts is an error, streamed or not',
  async (path, body) => {
    const { post } = await open((host) =>
      host.hook('onGeneration', (): GenerationAnswer => [{ type: 'finished', usage: null }], SERVED),
    )
    for (const stream of [false, true]) {
      const response = await post(path, { model: 'test-model', stream, ...body })
      expect([stream, response.status]).toEqual([stream, 500])
    }
  },
  5_000,
)

test.each(REQUESTS)(
  '%s: a map cannot drop the start and the end of an answer',
  async (path, body) => {
    const { post } = await open((host) =>
      host.hook(
        'onGeneration',
        (_, generation) => generation.mapEvents((event) => (event.type === 'choice_done' ? event : null)),
        SERVED,
      ),
    )
    for (const stream of [false, true]) {
      const response = await post(path, { model: 'test-model', stream, ...body })
      expect([stream, response.status]).toEqual([stream, 200])
      expect(await response.text()).not.toContain('hello')
    }
  },
  5_000,
)

test('without needsGenerations, bytes still pass through and the hook is not called for them', async () => {
  let calls = 0
  const { post, workers } = await open((host) =>
    host.hook('onGeneration', () => void calls++, { scope: 'all' }),
  )
  const body = { model: 'test-model', messages, unknown_member: { a: 1 } }
  expect((await post('/v1/chat/completions', body)).status).toBe(200)
  expect(calls).toBe(0)
  expect(workers[0].requestsTo(CHAT)[0].json()).toEqual(body)
})
