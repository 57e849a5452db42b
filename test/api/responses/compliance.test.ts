/** The templates of the Open Responses compliance suite, responses and events checked against the published schemas. */
import { expect, test } from 'vitest'
import { expectEvents, expectShape, message, templates } from './compliance-shapes.ts'
import {
  chatAnswer,
  type Json,
  openResponses,
  type ResponseJson,
  type ResponsesFleet,
} from './responses-fleet.ts'

test('the schemas reject invalid values', () => {
  expect(() => expectShape('ResponseResource', { id: 'x' })).toThrow()
  expect(() => expectShape('ResponseOutputTextDeltaStreamingEvent', { delta: 'x' })).toThrow()
})

test('the plain templates pass, non-streamed and streamed', async () => {
  const fleet = await openResponses(chatAnswer('hello my friend'))
  for (const [name, body] of templates) {
    const reply = await fleet.create(body)
    expectShape('ResponseResource', reply)
    expect([name, reply.status, reply.output.length]).toEqual([name, 'completed', 1])
    await streamOf(fleet, body)
  }
})

async function streamOf(fleet: ResponsesFleet, body: Json): Promise<ResponseJson> {
  return expectEvents(await fleet.stream(body))
}

test('tool-calling, non-streamed, streamed, and continued with the output only', async () => {
  const tool_calls = [{ id: 'call_1', name: 'get_weather', arguments: '{"location":"Bern"}' }]
  const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] }
  const tools = [{ type: 'function', name: 'get_weather', description: 'The weather', parameters }]
  const fleet = await openResponses(chatAnswer({ tool_calls }))
  const body = { input: [message('user', 'Weather in Bern?')], tools }
  const reply = await fleet.create(body)
  expectShape('ResponseResource', reply)
  expect(reply.output[0]).toMatchObject({ type: 'function_call', name: 'get_weather' })
  expect((await streamOf(fleet, body)).output).toMatchObject([{ type: 'function_call' }])
  fleet.workers[0].script('POST /v1/chat/completions', chatAnswer('It rains.'))
  const output = { type: 'function_call_output', call_id: 'call_1', output: '{"rain":true}' }
  const next = await fleet.create({ previous_response_id: reply.id, input: [output] })
  expectShape('ResponseResource', next)
  expect(next.status).toBe('completed')
})

test('compact-response, compact-missing-model', async () => {
  const { post } = await openResponses(chatAnswer('short'))
  const input = [message('user', 'one'), message('assistant', 'two')]
  const reply = await post('/v1/responses/compact', { model: 'test-model', input, prompt_cache_key: 'k' })
  expect(reply.status).toBe(200)
  expectShape('CompactResource', await reply.json())
  expect((await post('/v1/responses/compact', { input })).status).toBe(400)
})

test('a truncated response matches the schema', async () => {
  const cut = await openResponses(chatAnswer({ content: 'cut', finish: 'length', reasoning_content: 'hm' }))
  expectShape('ResponseResource', await cut.create({ input: 'hi', reasoning: { summary: 'auto' } }))
})
