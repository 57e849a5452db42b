/** Errors of engines whose status says something else: mistakes of clients, and a full context that others share; see `engine-quirks.test.ts`. */
import { describe, expect, test } from 'vitest'
import { jsonAnswer, type Script } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const PATH = '/v1/chat/completions'
const CHAT = `POST ${PATH}`
const QUICK = { initialBackoffMs: 1, maxBackoffMs: 2_000 }
const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const WHOLE = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
}
const served = jsonAnswer(WHOLE)

const ofLlama = (message: string) =>
  jsonAnswer({ error: { code: 500, message, type: 'server_error' } }, { status: 500 })
const ofMlx = (error: string) => jsonAnswer({ error }, { status: 404 })
const FULL = ofLlama('Context size has been exceeded.')

function open(runtime_type: string, scripts: readonly Script[], retry = {}): Promise<Fleet> {
  const workers = scripts.map((_script, index) => ({
    spec: { runtime_type, priority: 90 - index },
  }))
  return openFleet({ workers, kernel: { policy: 'least_load', retry: { ...QUICK, ...retry } } }).then(
    (fleet) => {
      for (const [index, script] of scripts.entries()) fleet.workers[index].script(CHAT, script)
      return fleet
    },
  )
}

const requestsOf = ({ workers }: Fleet) => workers.map((worker) => worker.requestsTo(CHAT).length)

async function failuresOf(fleet: Fleet): Promise<number[]> {
  const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
  return fleet.workers.map(({ url }) =>
    Number(text.split(`weir_worker_cb_consecutive_failures{worker="${url}"} `)[1]?.split('\n')[0]),
  )
}

describe('a mistake of the client', () => {
  test.each([
    ['llamacpp', ofLlama('image input is not supported - hint: you may need to provide the mmproj')],
    ['llamacpp', ofLlama("'messages' is required")],
    ['mlx', ofMlx("Only 'text' content type is supported.")],
  ])('of %s is a 400, is not repeated and counts for no worker', async (runtime, refusal) => {
    const fleet = await open(runtime, [refusal, served])
    const response = await fleet.post(PATH, body)
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: { message: string; type: string } }
    expect(error.message).toMatch(/not supported|is required|Only 'text'/)
    expect(error.type).toBe('invalid_request_error')
    expect(requestsOf(fleet)).toEqual([1, 0])
    expect(await failuresOf(fleet)).toEqual([0, 0])
  })

  test('that engines without known words answer with 500 is repeated once, and counts for no worker', async () => {
    const broken = jsonAnswer({ detail: 'Internal Server Error' }, { status: 500 })
    const fleet = await open('sglang', [broken, broken, broken])
    const response = await fleet.post(PATH, body)
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining('Internal Server Error'),
    ])
    expect(requestsOf(fleet)).toEqual([1, 1, 0])
    expect(await failuresOf(fleet)).toEqual([0, 0, 0])
  })
})

describe('a 500 counts for the worker', () => {
  const broken = jsonAnswer({ detail: 'Internal Server Error' }, { status: 500 })

  test('if another worker serves the request', async () => {
    const fleet = await open('sglang', [broken, served])
    expect((await fleet.post(PATH, body)).status).toBe(200)
    expect(await failuresOf(fleet)).toEqual([1, 0])
  })

  test('if another worker fails in another way', async () => {
    const fleet = await open('sglang', [broken, jsonAnswer({}, { status: 503 })], { maxAttempts: 2 })
    expect((await fleet.post(PATH, body)).status).toBe(503)
    expect(await failuresOf(fleet)).toEqual([1, 1])
  })

  test('if there is no other worker', async () => {
    const fleet = await open('sglang', [broken])
    expect((await fleet.post(PATH, body)).status).toBe(500)
    expect(await failuresOf(fleet)).toEqual([1])
  })
})

describe('a full context', () => {
  test('of one worker: another one serves the request, and none has failed', async () => {
    const fleet = await open('llamacpp', [FULL, served])
    expect((await fleet.post(PATH, body)).status).toBe(200)
    expect(requestsOf(fleet)).toEqual([1, 1])
    expect(await failuresOf(fleet)).toEqual([0, 0])
  })

  test('that stays full: 503 with a Retry-After', async () => {
    const fleet = await open('llamacpp', [FULL], { maxAttempts: 2 })
    const response = await fleet.post(PATH, body)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await response.json()).toMatchObject({ error: { code: 'worker_full' } })
    expect(requestsOf(fleet)).toEqual([2])
  })
})

describe('a rejected key', () => {
  const refusal = jsonAnswer({ error: { message: 'Invalid API Key' } }, { status: 401 })

  test('is sent to each worker once', async () => {
    const workers = [1, 2].map(() => ({ spec: { api_key: 'wrong' } }))
    const fleet = await openFleet({ workers, kernel: { retry: QUICK } })
    for (const worker of fleet.workers) worker.script(CHAT, refusal)
    const response = await fleet.post(PATH, body)
    expect(await response.json()).toMatchObject({ error: { code: 'worker_credentials_rejected' } })
    expect(requestsOf(fleet)).toEqual([1, 1])
  })
})
