/** Queries of requests for text: workers of the client's format get them, others do not, and the client is informed. */
import { expect, test } from 'vitest'
import { FORMATS, ROUTES, WORKERS } from '../support/formats/lanes.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

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
    else expect(warning).toContain('count=2; names="query.beta"')
  },
)
