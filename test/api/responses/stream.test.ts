/** Streamed responses: event types, their order, and streams that end early. */
import { expect, test } from 'vitest'
import { checkResponseEvents } from '../../support/response-events.ts'
import { sseAnswer, streamAnswer } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { CHAT, chatAnswer, chunk, openResponses, RESPONSES } from './responses-fleet.ts'

const DONE = [chunk({}, 'stop'), '[DONE]']

test('a text has the exact order of events, and the same response when read back', async () => {
  const { stream, fetchJson } = await openResponses(chatAnswer('hello world'))
  const { types, response, text } = await stream({ input: 'hi' })
  expect(types).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(text).toBe('hello world')
  expect(response).toMatchObject({ status: 'completed', usage: { input_tokens: 10, total_tokens: 15 } })
  expect(await fetchJson('GET', `/v1/responses/${response.id}`)).toEqual(response)
})

test('each frame is named after its type and arrives in one read', async () => {
  const { gateway } = await openResponses(chatAnswer('some words that come in several pieces'))
  const stream = openSse(gateway.url + RESPONSES, {
    body: { model: 'test-model', input: 'hi', stream: true },
  })
  await stream.done
  expect(stream.splitReads).toBe(0)
  expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/)
  checkResponseEvents(stream.events)
})

test('arguments of calls add up, also of two calls in parallel', async () => {
  const tool_calls = [
    { id: 'c1', name: 'a', arguments: '{"x":1}' },
    { id: 'c2', name: 'b', arguments: '' },
  ]
  const { stream } = await openResponses(chatAnswer({ tool_calls }))
  const tools = ['a', 'b'].map((name) => ({ type: 'function', name }))
  const { response, types } = await stream({ input: 'hi', tools })
  expect(response.output).toMatchObject([
    { type: 'function_call', call_id: 'c1', name: 'a', arguments: '{"x":1}', status: 'completed' },
    { type: 'function_call', call_id: 'c2', name: 'b', arguments: '{}', status: 'completed' },
  ])
  expect(types).toContain('response.function_call_arguments.done')
})

test('reasoning, text and a call are items in that order', async () => {
  const said = {
    reasoning_content: 'let me think',
    content: 'calling',
    tool_calls: [{ id: 'c1', name: 'a', arguments: '{}' }],
  }
  for (const summary of [null, 'auto']) {
    const { stream } = await openResponses(chatAnswer(said))
    const { response, types } = await stream({
      input: 'hi',
      reasoning: { summary },
      tools: [{ type: 'function', name: 'a' }],
    })
    expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call'])
    const delta = summary === null ? 'response.reasoning_text.delta' : 'response.reasoning_summary_text.delta'
    expect(types).toContain(delta)
    expect(types.lastIndexOf(delta)).toBeLessThan(types.indexOf('response.output_text.delta'))
  }
})

test('refusals and annotations are streamed', async () => {
  const annotation = { type: 'url_citation', url: 'http://x', title: 't', start_index: 0, end_index: 1 }
  const refused = await openResponses(chatAnswer({ content: '', refusal: 'I will not' }))
  const { response } = await refused.stream({ input: 'hi' })
  expect(response.output).toMatchObject([{ content: [{ type: 'refusal', refusal: 'I will not' }] }])
  const cited = await openResponses(chatAnswer({ content: 'see there', annotations: [annotation] }))
  const { types, response: whole } = await cited.stream({ input: 'hi' })
  expect(types).toContain('response.output_text.annotation.added')
  expect(whole.output).toMatchObject([{ content: [{ annotations: [annotation] }] }])
})

test('an empty response is a message with an empty part', async () => {
  const { stream } = await openResponses(chatAnswer(''))
  const { types, response } = await stream({ input: 'hi' })
  expect(response.output).toMatchObject([{ type: 'message', content: [{ text: '' }] }])
  expect(types).not.toContain('response.output_text.delta')
})

test('a truncated stream ends as incomplete, and so does its call', async () => {
  const tool_calls = [{ id: 'c1', name: 'a', arguments: '{"x":' }]
  const { stream } = await openResponses(chatAnswer({ tool_calls, finish: 'length' }))
  const { types, response } = await stream({ input: 'hi', tools: [{ type: 'function', name: 'a' }] })
  expect(types.at(-1)).toBe('response.incomplete')
  expect(response.output).toMatchObject([{ status: 'incomplete', arguments: '{"x":' }])
})

test('a worker failure ends the stream as failed, and is stored as failed', async () => {
  for (const steps of [
    [chunk({ content: 'half' }), { drop: 'close' as const }],
    [chunk({ content: 'half' }), JSON.stringify({ error: { message: 'out of memory' } })],
  ]) {
    const { stream, fetchJson } = await openResponses(() => sseAnswer(steps))
    const { types, response } = await stream({ input: 'hi' })
    expect(types.slice(-2)).toEqual(['error', 'response.failed'])
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    expect(response.output).toMatchObject([{ status: 'incomplete', content: [{ text: 'half' }] }])
    const stored = await fetchJson('GET', `/v1/responses/${response.id}`)
    expect(stored).toMatchObject({ status: 'failed', output: response.output })
  }
})

test('characters that are split over reads are complete in the deltas', async () => {
  const bytes = Buffer.from(
    [chunk({ content: 'grüezi 👋🏽 世界' }), ...DONE].map((data) => `data: ${data}\n\n`).join(''),
  )
  const steps = Array.from({ length: Math.ceil(bytes.length / 3) }, (_, i) =>
    bytes.subarray(i * 3, i * 3 + 3),
  )
  const answer = streamAnswer(steps, { headers: { 'content-type': 'text/event-stream' } })
  const { stream } = await openResponses(() => answer)
  expect((await stream({ input: 'hi' })).text).toBe('grüezi 👋🏽 世界')
})

test('a client disconnect closes the upstream request, and is stored', async () => {
  const forever = new Promise(() => {})
  const { gateway, workers, fetchJson } = await openResponses(() =>
    sseAnswer([chunk({ content: 'part ' }), chunk({ content: 'of it' }), { until: forever }]),
  )
  const stream = openSse(gateway.url + RESPONSES, {
    body: { model: 'test-model', input: 'hi', stream: true },
  })
  const [created] = await stream.receive(6)
  const { id } = JSON.parse(created.data).response
  stream.close()
  await workers[0].requestsTo(CHAT)[0].closed
  await expect
    .poll(() => fetchJson('GET', `/v1/responses/${id}`).catch(() => null))
    .toMatchObject({
      status: 'cancelled',
      output: [{ content: [{ text: 'part of it' }], status: 'incomplete' }],
    })
})

test('comments are sent while the worker is silent', async () => {
  const later = Promise.withResolvers<void>()
  const { gateway } = await openResponses(
    () => sseAnswer([{ until: later.promise }, chunk({ content: 'x' }), ...DONE]),
    {
      plugins: { responses: { streamOpensAfterMs: 20 } },
      kernel: { http: { heartbeatMs: 50 } },
    },
  )
  const stream = openSse(gateway.url + RESPONSES, {
    body: { model: 'test-model', input: 'hi', stream: true },
  })
  await stream.receive(2)
  await expect.poll(() => stream.comments.length).toBeGreaterThan(0)
  later.resolve()
  await stream.done
  expect(checkResponseEvents(stream.events).text).toBe('x')
})

test('an upstream idle timeout ends the stream with a valid failure', async () => {
  const forever = new Promise(() => {})
  const { gateway } = await openResponses(() => sseAnswer([chunk({ content: 'part' }), { until: forever }]), {
    kernel: { upstream: { idleMs: 100 }, retry: { maxAttempts: 1 } },
  })
  const stream = openSse(gateway.url + RESPONSES, {
    body: { model: 'test-model', input: 'hi', stream: true },
  })
  await stream.done
  const { types } = checkResponseEvents(stream.events)
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
})
