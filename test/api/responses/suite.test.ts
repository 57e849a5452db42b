/** The 17 templates of the Open Responses compliance suite over each kind of worker. */
import { describe, expect, test } from 'vitest'
import { checkResponseEvents } from '../../support/response-events.ts'
import { openSse } from '../../support/sse-client.ts'
import { openGrpcFleet } from '../grpc-fleet.ts'
import { openSimulated, WORKER_KINDS } from './compliance-fleet.ts'
import { expectEvents, expectShape, message, templates } from './compliance-shapes.ts'
import { type Json, newDirectory, type ResponseJson } from './responses-fleet.ts'
import { check, connect } from './socket-client.ts'

const model = 'sim-1'

test('response-output-phase-schema', () => {
  const phase = (value: string) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    phase: value,
    content: [{ type: 'output_text', text: 'x', annotations: [], logprobs: [] }],
  })
  for (const value of ['commentary', 'final_answer']) expectShape('Message', phase(value))
})

const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] }
const tools = [{ type: 'function', name: 'get_weather', description: 'The weather', parameters }]
const ASKS = { input: [message('user', 'Weather in Bern? Please call tool get_weather.')], tools }

function expectCall({ body }: ResponseJson): void {
  expectShape('ResponseResource', body)
  expect(body.output.map(({ type }: ResponseJson) => type)).toContain('function_call')
}

test('tool-calling over a gRPC worker; image-input is rejected there with a reason', async () => {
  const { post, engine, ids } = await openGrpcFleet({
    engines: [{ serverInfo: { serverArgs: { tool_call_parser: 'qwen' } } }],
    plugins: { responses: {} },
  })
  const call = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Bern"}}\n</tool_call>'
  engine.answer((await ids(call)).map((id) => [id]))
  const reply = await post('/v1/responses', { model: 'test-model', ...ASKS })
  expectCall({ body: await reply.json() })
  const [, image] = templates.find(([name]) => name === 'image-input') ?? []
  const refused = await post('/v1/responses', { model: 'test-model', ...image })
  expect([refused.status, ((await refused.json()) as ResponseJson).error.code]).toEqual([
    400,
    'multimodal_not_supported',
  ])
})

describe.each(WORKER_KINDS)('a %s worker', (kind) => {
  test('templates over HTTP', async () => {
    const { url } = await openSimulated(kind)
    const create = async (body: Json, path = '/v1/responses'): Promise<ResponseJson> => {
      const reply = await fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
        body: JSON.stringify({ model, ...body }),
      })
      return { status: reply.status, body: await reply.json() }
    }
    const stream = async (body: Json) => {
      const opened = openSse(`${url}/v1/responses`, { body: { model, stream: true, ...body } })
      await opened.done
      return expectEvents(checkResponseEvents(opened.events))
    }
    // basic-response, assistant-phase, system-prompt, image-input, multi-turn; all at once, as the suite does.
    const plain = kind === 'grpc' ? templates.filter(([name]) => name !== 'image-input') : templates
    await Promise.all(
      plain.map(async ([name, body]) => {
        const reply = await create(body)
        expect([name, reply.status, reply.body.status]).toEqual([name, 200, 'completed'])
        expectShape('ResponseResource', reply.body)
        expect(reply.body.output.length).toBeGreaterThan(0)
      }),
    )
    // streaming-response
    expect(await stream({ input: [message('user', 'Count from 1 to 5.')] })).toMatchObject({
      status: 'completed',
    })
    // tool-calling; the simulated engine never calls tools over gRPC.
    if (kind !== 'grpc') expectCall(await create(ASKS))
    // compact-response, compact-missing-model
    const input = [message('user', 'one'), message('assistant', 'two'), message('user', 'three')]
    const compacted = await create({ input, prompt_cache_key: 'k' }, '/v1/responses/compact')
    expect(compacted.status).toBe(200)
    expectShape('CompactResource', compacted.body)
    expect((await create({ input, model: undefined }, '/v1/responses/compact')).status).toBe(400)
  })

  test('templates over a WebSocket', async () => {
    const { url } = await openSimulated(kind)
    const said = (content: string) => [message('user', content)]
    const ended = (events: ResponseJson[]) => expectEvents(check(events))
    const errorOf = (events: ResponseJson[]) => events.find(({ type }) => type === 'error')?.error.code
    // websocket-response
    const one = await connect(url, model)
    expect(ended(await one.turn({ input: said('hi') })).status).toBe('completed')
    // websocket-sequential-responses
    for (const text of ['one', 'two'])
      expect(ended(await one.turn({ input: text, store: false })).status).toBe('completed')
    // websocket-continuation
    const first = ended(await one.turn({ input: 'remember 7', store: false }))
    const again = { input: said('which?'), store: false, previous_response_id: first.id }
    expect(ended(await one.turn(again)).status).toBe('completed')
    // websocket-reconnect-store-false-recovery, websocket-previous-response-not-found
    const other = await connect(url, model)
    expect(errorOf(await other.turn(again))).toBe('previous_response_not_found')
    expect(errorOf(await other.turn({ ...again, previous_response_id: 'resp_x' }))).toBe(
      'previous_response_not_found',
    )
    const fresh = ended(await other.turn({ input: said('hi'), store: false }))
    expect(fresh.status).toBe('completed')
    // websocket-failed-continuation-evicts-cache
    const orphan = [{ type: 'function_call_output', call_id: 'call_none', output: '{}' }]
    const failed = await other.turn({ input: orphan, store: false, previous_response_id: fresh.id })
    expect(errorOf(failed)).toBe('orphan_tool_output')
    const evicted = { input: said('hi'), store: false, previous_response_id: fresh.id }
    expect(errorOf(await other.turn(evicted))).toBe('previous_response_not_found')
    // websocket-compact-new-chain
    const compacted = await fetch(`${url}/v1/responses/compact`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, input: said('We talked of bears.') }),
    })
    const { output } = (await compacted.json()) as ResponseJson
    const chain = await other.turn({ input: [...output, ...said('Of what?')], store: false, tools: [] })
    expect(ended(chain).status).toBe('completed')
  })
})

test('a background response over gRPC cannot be cancelled and stays unchanged', async () => {
  const { post, engine, gateway, get } = await openGrpcFleet({
    plugins: { responses: { background: { pollMs: 20 } }, history: {}, storage: { dir: newDirectory() } },
  })
  engine.answer([[1]])
  const { id } = (await (
    await post('/v1/responses', { model: 'test-model', input: 'hi', background: true })
  ).json()) as ResponseJson
  const shown = async () => (await (await get(`/v1/responses/${id}`)).json()) as ResponseJson
  await expect.poll(async () => (await shown()).status).not.toBe('queued')
  await expect.poll(async () => (await shown()).status).toBe('completed')
  const before = await shown()
  const refused = await fetch(`${gateway.url}/v1/responses/${id}/cancel`, { method: 'POST' })
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { type: 'Bad Request', code: 'cancellation_not_supported' } },
  ])
  expect(await shown()).toEqual(before)
})
