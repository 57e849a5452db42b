/** Workers whose settings are wrong: they fail each request at once, and must not attract the traffic for it. */
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { jsonAnswer, rawAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const PATH = '/v1/chat/completions'
const CHAT = `POST ${PATH}`
const QUICK = { initialBackoffMs: 1, maxBackoffMs: 1 }
const CHUNK = '{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}'
const STREAM = `data: ${CHUNK}\n\ndata: [DONE]\n\n`
const stream = sseAnswer([CHUNK, '[DONE]'])
const html = rawAnswer('<html>sign in</html>', { headers: { 'content-type': 'text/html' } })
const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const preferred = { spec: { priority: 90 } }

async function consecutiveFailures({ gateway }: Fleet, { url }: { url: string }): Promise<number> {
  const text = await (await fetch(gateway.metricsUrl as string)).text()
  const prefix = `weir_worker_cb_consecutive_failures{worker="${url}"} `
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(prefix))
      ?.slice(prefix.length),
  )
}

const requestsOf = ({ workers }: Fleet) => workers.map((worker) => worker.requestsTo(CHAT).length)

describe('a stream request that is answered without an event stream', () => {
  const answers: [string, Script][] = [
    ['HTML', html],
    ['a whole JSON answer', jsonAnswer({ choices: [] })],
    ['no content type', rawAnswer('')],
  ]

  test.each(answers)(
    '%s: another worker answers, and the breaker counts the failure',
    async (_what, answer) => {
      const fleet = await openFleet({
        workers: [preferred, {}],
        kernel: { policy: 'least_load', retry: QUICK },
      })
      fleet.workers[0].script(CHAT, answer)
      fleet.workers[1].script(CHAT, stream)
      const response = await fleet.post(PATH, { ...body, stream: true })
      expect([response.status, await response.text()]).toEqual([200, STREAM])
      expect(requestsOf(fleet)).toEqual([1, 1])
      expect(await consecutiveFailures(fleet, fleet.workers[0])).toBe(1)
    },
  )

  test.each(answers)('%s of the only worker: 502 that says so', async (_what, answer) => {
    const fleet = await openFleet({ kernel: { retry: QUICK } })
    fleet.workers[0].script(CHAT, answer)
    const response = await fleet.post(PATH, { ...body, stream: true })
    expect(response.status).toBe(502)
    expect(await response.json()).toMatchObject({ error: { code: 'worker_not_streaming' } })
  })

  test('a route that does not stream passes on what the worker answers, whatever the client sends', async () => {
    const fleet = await openFleet({ workers: [{ spec: { apis: ['embeddings'] } }] })
    fleet.workers[0].script('POST /v1/embeddings', jsonAnswer({ data: [] }))
    const response = await fleet.post('/v1/embeddings', { model: 'test-model', input: 'a', stream: true })
    expect([response.status, await response.json()]).toEqual([200, { data: [] }])
  })

  test('a compressed event stream, and a whole answer to a request without stream, are passed on', async () => {
    const fleet = await openFleet()
    const zipped = rawAnswer(gzipSync(STREAM), {
      headers: { 'content-type': 'Text/Event-Stream; charset=utf-8', 'content-encoding': 'gzip' },
    })
    fleet.workers[0].once(CHAT, zipped).once(CHAT, jsonAnswer({ choices: [] }))
    const response = await fleet.post(PATH, { ...body, stream: true })
    expect([response.status, await response.text()]).toEqual([200, STREAM])
    expect((await fleet.post(PATH, body)).status).toBe(200)
    expect(await consecutiveFailures(fleet, fleet.workers[0])).toBe(0)
  })
})

describe('404 for a model that the worker lists', () => {
  const missing = jsonAnswer(
    { error: { message: 'no such model', code: 'model_not_found' } },
    { status: 404 },
  )

  test('another worker answers, and the breaker counts the failure', async () => {
    const fleet = await openFleet({
      workers: [preferred, {}],
      kernel: { policy: 'least_load', retry: QUICK },
    })
    fleet.workers[0].script(CHAT, missing)
    expect((await fleet.post(PATH, body)).status).toBe(200)
    expect(requestsOf(fleet)).toEqual([1, 1])
    expect(await consecutiveFailures(fleet, fleet.workers[0])).toBe(1)
  })

  test('404 of all workers is about the request: it is passed on, and no breaker counts it', async () => {
    const fleet = await openFleet({
      workers: [preferred, {}],
      kernel: { policy: 'least_load', retry: QUICK },
    })
    for (const worker of fleet.workers) worker.script(CHAT, missing)
    const response = await fleet.post(PATH, body)
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { code: 'model_not_found' } })
    expect(requestsOf(fleet)).toEqual([1, 1])
    for (const worker of fleet.workers) expect(await consecutiveFailures(fleet, worker)).toBe(0)
  })
})

test.each(['round_robin', 'least_load', 'cache_aware', 'power_of_two'])(
  '%s: of 100 streams to 4 workers, one of which answers HTML, none fails',
  async (policy) => {
    const fleet = await openFleet({ workers: [{}, {}, {}, {}], kernel: { policy } })
    for (const worker of fleet.workers) worker.script(CHAT, stream)
    fleet.workers[1].script(CHAT, html)
    const ask = async (nth: number) => {
      const messages = [{ role: 'user', content: `prompt ${nth % 7}` }]
      const response = await fleet.post(PATH, { model: 'test-model', messages, stream: true })
      await response.text()
      return response.status
    }
    const statuses: number[] = []
    for (let nth = 0; nth < 100; nth += 4)
      statuses.push(...(await Promise.all([nth, nth + 1, nth + 2, nth + 3].map(ask))))
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(requestsOf(fleet)[1]).toBeLessThan(20)
  },
)
