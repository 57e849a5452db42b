/** Virtual models: which target gets a request, and which one follows when it fails. */
import { expect, test } from 'vitest'
import { dropAnswer, hangAnswer, jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import type { FleetOptions } from './fleet.ts'
import { CHAT, MESSAGES, type MessagesFleet, openMessages, VENDOR } from './messages-fleet.ts'

const PATH = '/v1/chat/completions'
const HI = { model: 'assistant', messages: [{ role: 'user', content: 'Hi' }] }

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'from the vendor' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 3 },
}

type Models = Record<string, Record<string, unknown>>

/** Workers of `small`, `next` and `claude`; the last one is a vendor with the Messages format. */
async function open(models: Models, more: FleetOptions = {}): Promise<MessagesFleet> {
  const fleet = await openMessages({
    workers: [
      { models: ['small'] },
      { models: ['next'], spec: { labels: { pool: 'canary' } } },
      { models: ['claude'], ...VENDOR },
    ],
    ...more,
    plugins: { 'virtual-models': { models }, ...more.plugins },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1, maxAttempts: 2 }, ...more.kernel },
  })
  fleet.workers[2]?.script(MESSAGES, jsonAnswer(MESSAGE))
  return fleet
}

/** Texts and served models of answers. */
async function served(response: Response) {
  expect(response.status).toBe(200)
  const body = (await response.json()) as { model: string }
  return { header: response.headers.get('x-weir-model'), body: body.model }
}

test('a request goes to the target, whose worker and client see its model', async () => {
  const { post, workers } = await open({ assistant: { targets: [{ model: 'small' }] } })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'small', body: 'small' })
  expect(workers[0].requestsTo(CHAT)[0].json()).toEqual({ ...HI, model: 'small' })
  const direct = await post(PATH, { ...HI, model: 'small' })
  expect(direct.headers.get('x-weir-model')).toBeNull()
})

test('an id of a worker that no header can carry is not shown', async () => {
  const id = 'small\r\nset-cookie: a=1'
  const { post, workers } = await open(
    { assistant: { targets: [{ model: 'small' }] } },
    { workers: [{ spec: { models: [{ id, aliases: ['small'] }] } }] },
  )
  const response = await post(PATH, HI)
  expect([response.status, response.headers.get('x-weir-model')]).toEqual([200, null])
  expect(response.headers.get('set-cookie')).toBeNull()
  expect(workers[0].requestsTo(CHAT)[0].json()).toMatchObject({ model: id })
})

test.each([
  ['a broken connection', dropAnswer('reset')],
  ['a failure status', jsonAnswer({ error: { message: 'busy' } }, { status: 429 })],
  ['an unknown model', jsonAnswer({ error: { message: 'no such model' } }, { status: 404 })],
  ['rejected credentials', jsonAnswer({ error: { message: 'key' } }, { status: 401 })],
])('after %s the fallback serves, whole and streamed', async (_, failure) => {
  const { post, workers } = await open(
    { assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] } },
    { workers: [{ models: ['small'], spec: { api_key: 'k' } }, { models: ['next'] }] },
  )
  workers[0].script(CHAT, failure)
  expect(await served(await post(PATH, HI))).toEqual({ header: 'next', body: 'next' })
  workers[1].script(
    CHAT,
    sseAnswer([
      'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ]),
  )
  const streamed = await post(PATH, { ...HI, stream: true })
  expect(streamed.headers.get('x-weir-model')).toBe('next')
  expect(await streamed.text()).toContain('[DONE]')
})

test('a fallback in the format of another vendor is translated', async () => {
  const { post, workers } = await open({
    assistant: {
      targets: [{ model: 'small' }],
      fallbacks: [{ model: 'claude', provider: 'anthropic' }],
    },
  })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'small', body: 'small' })
  expect(workers[0].requestsTo(CHAT)).toHaveLength(1)
  workers[0].script(CHAT, dropAnswer('reset'))
  const answer = await post(PATH, HI)
  expect(answer.headers.get('x-weir-model')).toBe('claude')
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'from the vendor' } }] })
  expect(workers[2].requestsTo(MESSAGES)[0].json()).toMatchObject({ model: 'claude' })
})

test('a target without a worker is given up at once', async () => {
  const { post } = await open({
    assistant: {
      targets: [{ model: 'missing' }],
      fallbacks: [
        { model: 'small', labels: { pool: 'canary' } },
        { model: 'next', labels: { pool: 'canary' } },
      ],
    },
  })
  expect(await served(await post(PATH, HI))).toEqual({ header: 'next', body: 'next' })
})

test('a target whose worker is still being registered is given up at once', async () => {
  const { post } = await open(
    { assistant: { targets: [{ model: 'late' }], fallbacks: [{ model: 'next' }] } },
    { workersSection: { health: {} } },
  )
  const late = { url: 'http://127.0.0.1:1', models: [{ id: 'late' }], runtime_type: 'sglang' }
  expect((await post('/workers', late)).status).toBe(202)
  expect(await (await post(PATH, { ...HI, model: 'late' })).text()).toContain('workers_pending')
  expect(await served(await post(PATH, HI))).toEqual({ header: 'next', body: 'next' })
})

test('the limit of all attempts holds over all targets', async () => {
  const { post, workers } = await open(
    { assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] } },
    { kernel: { upstream: { requestMs: 300 } } },
  )
  workers[0].script(CHAT, hangAnswer())
  expect((await post(PATH, HI)).status).toBe(504)
  expect(workers[1].requestsTo(CHAT)).toEqual([])
})

test('if every target fails, the client gets the error of the last one', async () => {
  const { post, workers, gateway } = await open({
    assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'missing' }, { model: 'next' }] },
  })
  workers[0].script(CHAT, dropAnswer('reset'))
  workers[1].script(CHAT, jsonAnswer({ error: { message: 'full' } }, { status: 503 }))
  const answer = await post(PATH, HI)
  expect([answer.status, answer.headers.get('x-weir-model')]).toEqual([503, 'next'])
  expect(workers[1].requestsTo(CHAT)).toHaveLength(2)
  const page = await (await fetch(gateway.metricsUrl as string)).text()
  expect(page.match(/^weir_virtual_model_fallbacks_total.*$/gm)?.sort()).toEqual([
    'weir_virtual_model_fallbacks_total{virtual_model="assistant",target="missing",reason="no_worker"} 1',
    'weir_virtual_model_fallbacks_total{virtual_model="assistant",target="small",reason="failure"} 1',
  ])
})

test('a stream that breaks after its first byte is not continued on a fallback', async () => {
  const { post, workers } = await open({
    assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] },
  })
  const piece = 'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n'
  workers[0].script(CHAT, sseAnswer([piece, { drop: 'reset' }]))
  const text = await textUntilCut(await post(PATH, { ...HI, stream: true }))
  expect(text).toContain('"error"')
  expect(workers[1].requestsTo(CHAT)).toEqual([])
})

test('an error of the client passes', async () => {
  const { post, workers } = await open({
    assistant: { targets: [{ model: 'small' }], fallbacks: [{ model: 'next' }] },
  })
  workers[0].script(CHAT, jsonAnswer({ error: { message: 'bad temperature' } }, { status: 400 }))
  const answer = await post(PATH, HI)
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('bad temperature')
  expect(workers[1].requestsTo(CHAT)).toEqual([])
})

test('a session keeps its target, and new sessions spread by weight', async () => {
  const { post } = await open({
    assistant: {
      targets: [
        { model: 'small', weight: 50 },
        { model: 'next', weight: 50 },
      ],
      sticky: 'session',
    },
  })
  const ask = async (key: string) =>
    (await post(PATH, HI, { 'x-weir-routing-key': key })).headers.get('x-weir-model')
  const first = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(`session-${i}`)))
  const second = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(`session-${i}`)))
  expect(second).toEqual(first)
  expect(new Set(first)).toEqual(new Set(['small', 'next']))
})

test('a target of weight 0 gets nothing, and a reload changes the weights', async () => {
  const models = (small: number, next: number) => ({
    assistant: {
      targets: [
        { model: 'small', weight: small },
        { model: 'next', weight: next },
      ],
    },
  })
  const { gateway, post } = await open(models(1, 0), { plugins: { reload: {}, auth: { apiKey: 'root' } } })
  const key = { authorization: 'Bearer root' }
  const ask = async () => (await post(PATH, HI, key)).headers.get('x-weir-model')
  expect(new Set(await Promise.all(Array.from({ length: 20 }, ask)))).toEqual(new Set(['small']))
  gateway.rewrite({ 'virtual-models': { models: models(0, 1) } })
  expect((await post('/config/apply', {}, key)).status).toBe(200)
  expect(await ask()).toBe('next')
})

test('the model list has virtual models, and keys are restricted by their names', async () => {
  const { get, post } = await open(
    { assistant: { targets: [{ model: 'small' }] }, next: { targets: [{ model: 'small' }] } },
    {
      plugins: {
        auth: {
          apiKey: 'root',
          keys: [{ id: 'one', tenant: 'a', key: 'limited', models: ['assistant'] }],
        },
      },
    },
  )
  const idsFor = async (key: string) => {
    const list = await (await get('/v1/models', { authorization: `Bearer ${key}` })).json()
    return (list as { data: { id: string }[] }).data.map(({ id }) => id)
  }
  expect(await idsFor('root')).toEqual(['small', 'next', 'claude', 'assistant'])
  expect(await idsFor('limited')).toEqual(['assistant'])
  const limited = { authorization: 'Bearer limited' }
  expect(await served(await post(PATH, HI, limited))).toEqual({ header: 'small', body: 'small' })
  expect((await post(PATH, { ...HI, model: 'small' }, limited)).status).toBe(403)
  expect((await get('/v1/models/assistant', limited)).status).toBe(200)
  // A name that is also a model of workers takes its place.
  const shadowed = await post(PATH, { ...HI, model: 'next' }, { authorization: 'Bearer root' })
  expect(await served(shadowed)).toEqual({ header: 'small', body: 'small' })
})

test.each([
  [
    { a: { targets: [{ model: 'b' }] }, b: { targets: [{ model: 'x' }] } },
    /a\.targets\.0\.model.*not nested/,
  ],
  [{ a: { targets: [{ model: 'x', weight: 0 }] } }, /a\.targets.*weight above 0/],
  [{ a: { targets: [{ model: 'x', parameters: { stream: true } }] } }, /parameters\.stream/],
  [{ a: { targets: [{ model: 'x', parameters: { temperature: 'hot' } }] } }, /parameters\.temperature/],
])('a wrong configuration is rejected: %j', async (models, message) => {
  const error = await open(models).catch((cause: Error) => cause)
  expect(String(error)).toMatch(message)
})
