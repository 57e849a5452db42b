/** Relayed streams of chats and completions that end before a finish_reason, with a valid HTTP ending. */
import { describe, expect, test } from 'vitest'
import { streamAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const ROUTES = [
  {
    path: '/v1/chat/completions',
    body: { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    piece: (text: string, reason: string | null = null) =>
      event({ id: 'c', choices: [{ index: 0, delta: { content: text }, finish_reason: reason }] }),
  },
  {
    path: '/v1/completions',
    body: { model: 'test-model', stream: true, prompt: 'hi' },
    piece: (text: string, reason: string | null = null) =>
      event({ id: 'c', choices: [{ index: 0, text, finish_reason: reason }] }),
  },
]
const headers = { 'content-type': 'text/event-stream' }

describe.each(ROUTES)('$path', ({ path, body, piece }) => {
  async function relayed(events: Parameters<typeof streamAnswer>[0]) {
    const fleet = await openFleet({
      kernel: { retry: { maxAttempts: 3 }, breaker: { failureThreshold: 1 } },
    })
    const [worker] = fleet.workers
    worker.script(`POST ${path}`, streamAnswer(events, { headers }))
    const text = await (await fleet.post(path, body)).text()
    const { workers } = (await (await fleet.get('/workers')).json()) as {
      workers: { breaker: string; load: number }[]
    }
    return { text, worker: workers[0], requests: worker.requestsTo(`POST ${path}`).length }
  }

  test('an early regular end: an error event, a failure of the worker, no second request', async () => {
    const { text, worker, requests } = await relayed([piece('a'), piece('b'), { waitMs: 5 }])
    const expected = `${piece('a')}${piece('b')}`
    expect(text.startsWith(expected)).toBe(true)
    const [, data = ''] = /^data: (.*)\n\n/.exec(text.slice(expected.length)) ?? []
    expect(JSON.parse(data)).toMatchObject({
      error: { type: 'internal_error', code: 'read_response_body_failed' },
    })
    expect(worker).toMatchObject({ load: 0 })
    expect(worker.breaker).not.toBe('closed')
    expect(requests).toBe(1)
  })

  test.each([
    ['[DONE]', (p: typeof piece) => [p('a'), 'data: [DO', 'NE]\n\n']],
    ['a reason alone', (p: typeof piece) => [p('a'), p('', 'stop')]],
    ['a reason, then usage', (p: typeof piece) => [p('', 'length'), event({ choices: [], usage: {} })]],
    ['an error of its own', (p: typeof piece) => [p('a'), event({ error: { message: 'no' } })]],
    ['words of another format', () => ['data: hello\n\n']],
  ])('a stream that ends with %s is passed on byte for byte', async (_what, make) => {
    const events = make(piece)
    const { text, worker } = await relayed(events)
    expect(text).toBe(events.join(''))
    expect(worker.breaker).toBe('closed')
  })
})
