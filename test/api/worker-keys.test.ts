/** Workers that repeat the key of the gateway in their errors: neither clients nor the log get it. */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  jsonAnswer,
  type RecordedRequest,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'

const KEY = 'sk-worker-7f3a9b2c4d5e6f'
const CHAT = 'POST /v1/chat/completions'
const ROUTES = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  ['/v1/messages', { max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }],
  ['/v1/responses', { input: 'hi', store: false }],
] as const

let worker: ScriptedWorker
let gateway: TestGateway
beforeAll(async () => {
  worker = await startScriptedWorker({ models: ['m'] })
  gateway = await startGateway({
    kernel: { auth: 'off', breaker: { enabled: false }, retry: { maxAttempts: 1 } },
    plugins: {
      chat: {},
      messages: {},
      responses: {},
      health: {},
      workers: { workers: [{ url: worker.url, models: [{ id: 'm' }], api_key: KEY }] },
    },
  })
  await vi.waitFor(async () => expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200), 20_000)
})
afterAll(async () => {
  await gateway.stop()
  await worker.close()
})
beforeEach(() => worker.requests.splice(0))

function repeated({ rawHeaders }: RecordedRequest) {
  const header = rawHeaders.find(([name]) => name.toLowerCase() === 'authorization')?.[1] ?? ''
  expect(header).toBe(`Bearer ${KEY}`)
  return { error: { message: `Incorrect API key provided: ${header.slice(7)}.`, type: 't', code: 'c' } }
}

async function send(path: string, body: object): Promise<string> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', ...body }),
  })
  return JSON.stringify([...response.headers]) + (await textUntilCut(response))
}

test.each(ROUTES.flatMap((route) => [400, 404, 429, 500].map((status) => [...route, status] as const)))(
  '%s %j: a body with status %i',
  async (path, body, status) => {
    worker.script(CHAT, (request) => jsonAnswer(repeated(request), { status }))
    const text = await send(path, body)
    expect(text).not.toContain(KEY)
    expect(worker.requestsTo(CHAT)).not.toEqual([])
  },
)

test('a body that arrives in pieces, cut within the key', async () => {
  worker.script(CHAT, (request) => {
    const text = JSON.stringify(repeated(request))
    const at = text.indexOf(KEY) + 9
    const headers = { 'content-type': 'application/json', 'content-length': String(text.length) }
    return streamAnswer([text.slice(0, at), { waitMs: 20 }, text.slice(at)], { status: 400, headers })
  })
  const text = await send(...ROUTES[0])
  expect(text).toContain(`provided: ${'*'.repeat(KEY.length)}.`)
})

test.each(ROUTES)('%s %j: an error event of a stream', async (path, body) => {
  const piece = JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { content: 'a' } }] })
  worker.script(CHAT, (request) => sseAnswer([piece, JSON.stringify(repeated(request))]))
  const text = await send(path, { ...body, stream: true })
  expect(text).toContain('Incorrect API key')
  expect(text).not.toContain(KEY)
})
