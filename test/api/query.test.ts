/** Queries of requests for text: workers of the client's format get them, others do not, and the client is informed. */
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { FORMATS, ROUTES, WORKERS } from '../support/formats/lanes.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'
import { newDirectory } from './responses/responses-fleet.ts'

const MESSAGES = [{ role: 'user', content: 'hi' }]
const BODIES = {
  chat: { model: 'test-model', messages: MESSAGES },
  messages: { model: 'test-model', max_tokens: 9, messages: MESSAGES },
  responses: { model: 'test-model', store: false, input: 'hi' },
}
const usage = { input_tokens: 1, output_tokens: 1 }
const ANSWERS = {
  chat: { id: 'c', model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: { content: 'hi' } }] },
  messages: { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn', usage },
  responses: { id: 'r', object: 'response', model: 'm', status: 'completed', output: [] },
}

test.each(FORMATS.flatMap((client) => FORMATS.map((worker) => [client, worker] as const)))(
  'a query of %s clients over %s workers',
  async (client, worker) => {
    const fleet = await openFleet({ workers: [WORKERS[worker]], plugins: { messages: {}, responses: {} } })
    const route = ROUTES[worker]
    fleet.workers[0].script(`POST ${route}`, jsonAnswer(ANSWERS[worker]))
    const query = 'beta=true&odd%0d%0a=%20x'
    const reply = await fleet.post(`${ROUTES[client]}?${query}`, BODIES[client])
    expect(reply.status, await reply.text()).toBe(200)
    const paths = fleet.workers[0].requests.map(({ path }) => path)
    expect(paths).toEqual([client === worker ? `${route}?${query}` : route])
    const warning = reply.headers.get('x-weir-warning')
    if (client === worker) expect(warning).toBeNull()
    else if (client === 'chat') expect(warning).toContain('count=2; names="query.beta"')
    // SDKs send the parameter with each request of their beta types.
    else expect(warning).toContain('count=1; names=""')
  },
)

test('clients of beta types, which send ?beta=true, create and read responses', async () => {
  const fleet = await openFleet({
    plugins: { responses: {}, history: {}, storage: { dir: newDirectory() } },
  })
  fleet.workers[0].script(`POST ${ROUTES.chat}`, jsonAnswer(ANSWERS.chat))
  const { responses } = new OpenAI({ baseURL: `${fleet.gateway.url}/v1`, apiKey: 'any', maxRetries: 0 }).beta
  const { data, response } = await responses.create({ model: 'test-model', input: 'hi' }).withResponse()
  expect(response.headers.get('x-weir-warning')).toBeNull()
  expect((await responses.retrieve(data.id)).id).toBe(data.id)
  expect((await responses.inputItems.list(data.id)).data).toHaveLength(1)
})
