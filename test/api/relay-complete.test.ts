/** Relayed streams of chats and completions that end before a finish_reason, with a valid HTTP ending. */
import { describe, expect, test } from 'vitest'
import { streamAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
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
/** Of the worker. */
const ERROR = event({ error: { message: 'no' } })
const headers = { 'content-type': 'text/event-stream' }

const DONE = 'data: [DONE]\n\n'

describe.each(ROUTES)('$path', ({ path, body, piece }) => {
  async function relayed(events: Parameters<typeof streamAnswer>[0]) {
    const fleet = await openFleet({
      kernel: { retry: { maxAttempts: 3 }, breaker: { failureThreshold: 1 } },
    })
    const [worker] = fleet.workers
    worker.script(`POST ${path}`, streamAnswer(events, { headers }))
    const stream = openSse(`${fleet.gateway.url}${path}`, { body })
    await stream.done
    const { isWhole } = stream
    const text = stream.text()
    const { workers } = (await (await fleet.get('/workers')).json()) as {
      workers: { breaker: string; load: number }[]
    }
    return { text, isWhole, worker: workers[0], requests: worker.requestsTo(`POST ${path}`).length }
  }

  test('an early regular end: an error event, a closed connection, a failure of the worker, no second request', async () => {
    const { text, isWhole, worker, requests } = await relayed([piece('a'), piece('b'), { waitMs: 5 }])
    expect(isWhole).toBe(false)
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
    ['[DONE]', '', (p: typeof piece) => [p('a'), 'data: [DO', 'NE]\n\n']],
    ['a reason alone', DONE, (p: typeof piece) => [p('a'), p('', 'stop')]],
    ['a reason, then usage', DONE, (p: typeof piece) => [p('', 'length'), event({ choices: [], usage: {} })]],
    ['words of another format', '', () => ['data: hello\n\n']],
  ])('a stream that ends with %s is passed on byte for byte, and gets %j', async (_what, added, make) => {
    const events = make(piece)
    const { text, isWhole, worker } = await relayed(events)
    expect([text, isWhole]).toEqual([events.join('') + added, true])
    expect(worker.breaker).toBe('closed')
  })

  const failed = (p: typeof piece) => [p('a'), ERROR]
  test.each([
    ['and ends in order', (p: typeof piece) => failed(p)],
    ['and the end mark', (p: typeof piece) => [...failed(p), 'data: [DONE]\n\n']],
    ['and closes its connection', (p: typeof piece) => [...failed(p), { drop: 'close' as const }]],
  ])(
    'a worker that sends an error event %s: the same bytes, and a closed connection',
    async (_what, make) => {
      const events = make(piece)
      const { text, isWhole, worker } = await relayed(events)
      expect(text).toBe(events.filter((part) => typeof part === 'string').join(''))
      expect(isWhole).toBe(false)
      expect(worker.breaker).toBe('closed')
    },
  )

  test('a slow client gets everything: its connection is not cut', async () => {
    const fleet = await openFleet()
    const events = [...Array.from({ length: 40 }, () => piece('a'.repeat(200_000))), piece('b'), ERROR]
    fleet.workers[0].script(`POST ${path}`, streamAnswer(events, { headers }))
    const stream = openSse(`${fleet.gateway.url}${path}`, { body })
    await stream.receive(1)
    stream.pause()
    stream.resume()
    await stream.done
    expect(stream.bodyLength).toBe(events.join('').length)
  })
})
