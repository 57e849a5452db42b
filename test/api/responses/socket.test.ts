/** Responses over a WebSocket, as the compliance suite uses it. */
import { expect, test } from 'vitest'
import { sseAnswer, streamAnswer } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import {
  CHAT,
  chatAnswer,
  chunk,
  type Json,
  openResponses,
  RESPONSES,
  type ResponseJson,
} from './responses-fleet.ts'
import { check, connect } from './socket-client.ts'

test('a turn has the events of a stream, without [DONE]', async () => {
  const { gateway } = await openResponses(chatAnswer('hello'))
  const { turn } = await connect(gateway.url)
  const { text, response } = check(await turn({ input: [{ type: 'message', role: 'user', content: 'hi' }] }))
  expect([text, response.status]).toEqual(['hello', 'completed'])
})

test('what a request and an answer lose on the way is named in the response, as there is no header', async () => {
  const answer = sseAnswer([chunk({ content: 'x', brand_new: 1 }), chunk({}, 'stop'), '[DONE]'])
  const { gateway, fetchJson } = await openResponses(answer)
  const { turn } = await connect(gateway.url)
  const { response } = check(await turn({ input: 'hi', seed: 1 }))
  expect(response.x_weir_warning).toBe(
    'members_ignored; count=1; names="seed", members_ignored; count=1; names="choices.delta.brand_new"',
  )
  expect(await fetchJson('GET', `${RESPONSES}/${response.id}`)).toEqual(response)
  expect(check(await turn({ input: 'hi', store: false })).response.x_weir_warning).toContain('brand_new')
})

test('turns that are not stored can be continued on their socket, and on no other', async () => {
  const { gateway, asked } = await openResponses(chatAnswer('x'))
  const { turn } = await connect(gateway.url)
  const first = check(await turn({ input: 'one', store: false })).response
  const second = check(await turn({ input: 'two', store: false, previous_response_id: first.id })).response
  expect(second.status).toBe('completed')
  expect(asked()[1].messages.map(({ content }: Json) => content)).toEqual(['one', 'x', 'two'])
  const other = await connect(gateway.url)
  const [refused] = await other.turn({ input: 'three', store: false, previous_response_id: second.id })
  expect(refused).toMatchObject({
    type: 'error',
    status: 400,
    error: { code: 'previous_response_not_found', type: 'invalid_request_error' },
  })
  expect(check(await other.turn({ input: 'fresh', store: false })).response.status).toBe('completed')
  // Only the last turn is kept.
  const [old] = await turn({ input: 'x', store: false, previous_response_id: first.id })
  expect(old.error.code).toBe('previous_response_not_found')
})

test('turns that are kept for a socket count for its tenant; one beyond the budget is forgotten', async () => {
  const { gateway } = await openResponses(chatAnswer('x'), {
    kernel: { http: { maxBodyBytes: 1_000_000, maxHeldBodyBytesPerTenant: 1_000_000 } },
    plugins: { responses: { socket: { maxMessageBytes: 400_000 } } },
  })
  const input = 'y'.repeat(300_000)
  // The second round finds the budget as the first did.
  for (const round of [1, 2]) {
    const { turn, ws } = await connect(gateway.url)
    let id: string | undefined
    for (const _ of [1, 2, 3])
      id = String(check(await turn({ input, store: false, previous_response_id: id })).response.id)
    const [refused] = await turn({ input: 'go on', store: false, previous_response_id: id })
    expect([round, refused.error?.code]).toEqual([round, 'previous_response_not_found'])
    const closed = new Promise((resolve) => ws.once('close', resolve))
    ws.close()
    await closed
  }
})

test('a failed turn discards the one before', async () => {
  const { gateway } = await openResponses(chatAnswer('x'))
  const { turn } = await connect(gateway.url)
  const first = check(await turn({ input: 'one', store: false })).response
  const orphan = { type: 'function_call_output', call_id: 'call_no', output: 'x' }
  const [refused] = await turn({ input: [orphan], store: false, previous_response_id: first.id })
  expect(refused.error.code).toBe('orphan_tool_output')
  const [gone] = await turn({ input: 'x', store: false, previous_response_id: first.id })
  expect(gone.error.code).toBe('previous_response_not_found')
})

test('stored turns can be continued on any socket, and other messages are rejected', async () => {
  const { gateway } = await openResponses(chatAnswer('x'))
  const a = await connect(gateway.url)
  const first = check(await a.turn({ input: 'one' })).response
  const b = await connect(gateway.url)
  expect(check(await b.turn({ input: 'two', previous_response_id: first.id })).response.status).toBe(
    'completed',
  )
  for (const odd of [{ type: 'session.update' }, { input: 'x', background: true }, { input: '' }]) {
    const [error] = await b.turn(odd)
    expect([error.type, error.status]).toEqual(['error', 400])
  }
})

test('messages are processed in order; closing the socket closes the upstream request', async () => {
  const forever = new Promise(() => {})
  const { gateway, workers } = await openResponses()
  workers[0].once(CHAT, chatAnswer('one'))
  workers[0].once(CHAT, sseAnswer([chunk({ content: 'x' }), { until: forever }]))
  const { ws, messages, send } = await connect(gateway.url)
  send({ input: 'a' })
  send({ input: 'b' })
  await expect.poll(() => messages.filter(({ type }) => type === 'response.output_text.delta').length).toBe(2)
  const ends = messages.findIndex(({ type }) => type === 'response.completed')
  expect(messages.filter(({ type }) => type === 'response.created')).toHaveLength(2)
  expect(messages[ends + 1].type).toBe('response.created')
  ws.close()
  await workers[0].requestsTo(CHAT)[1].closed
})

test('a client that stops reading pauses its worker and is disconnected; other streams continue', async () => {
  const { gateway, workers } = await openResponses(undefined, {
    plugins: { metrics: {} },
    kernel: { http: { replyIdleMs: 1_000 } },
  })
  const steps = 6_000
  let sent = 0
  function* flood() {
    for (; sent < steps; sent++) yield `data: ${chunk({ content: 'x'.repeat(16_384) })}\n\n`
  }
  const gate = Promise.withResolvers<void>()
  workers[0].once(CHAT, streamAnswer(flood(), { headers: { 'content-type': 'text/event-stream' } }))
  workers[0].once(
    CHAT,
    sseAnswer([chunk({ content: 'a' }), { until: gate.promise }, chunk({}, 'stop'), '[DONE]']),
  )
  const { ws, messages, send } = await connect(gateway.url)
  const closed = new Promise((resolve) => ws.once('close', resolve))
  send({ input: 'a' })
  await expect.poll(() => messages.length).toBeGreaterThan(2)
  ws.pause()
  const other = openSse(gateway.url + RESPONSES, { body: { model: 'test-model', stream: true, input: 'b' } })
  await expect.poll(() => other.events.length).toBeGreaterThan(2)
  const [request] = workers[0].requestsTo(CHAT)
  await request.closed
  expect(request.isAborted).toBe(true)
  expect(sent).toBeLessThan(steps)
  const metrics = async () => await (await fetch(gateway.metricsUrl as string)).text()
  await expect.poll(metrics).toMatch(/path="\/v1\/responses",.*error_code="reply_timeout"\} 1/)
  expect(await metrics()).toContain('weir_sockets_open 0')
  ws.resume()
  expect(await closed).toBe(1006)
  gate.resolve()
  await other.done
  expect(other.text()).toContain('response.completed')
})

test('a socket beyond maxAgeMs accepts no further turn', async () => {
  const { gateway } = await openResponses(chatAnswer('x'), {
    plugins: { responses: { socket: { maxAgeMs: 1_000 } } },
  })
  const { turn } = await connect(gateway.url)
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  const [error] = await turn({ input: 'x' })
  expect(error.error.code).toBe('websocket_connection_limit_reached')
})

test('a compacted conversation starts a new chain', async () => {
  const { gateway, post, asked, create } = await openResponses(chatAnswer('a short summary'))
  const input = [
    { type: 'message', role: 'user', content: 'my name is Ada' },
    { type: 'message', role: 'assistant', content: 'hello Ada' },
  ]
  const reply = await post('/v1/responses/compact', { model: 'test-model', input, prompt_cache_key: 'k' })
  const compacted = (await reply.json()) as ResponseJson
  expect(compacted).toMatchObject({ object: 'response.compaction', usage: { total_tokens: 15 } })
  expect(compacted.output.map(({ type }: Json) => type)).toEqual(['message', 'compaction'])
  expect(JSON.stringify(compacted)).not.toContain('a short summary')
  const { turn } = await connect(gateway.url)
  const next = {
    input: [...compacted.output, { role: 'user', content: 'who am I?' }],
    tools: [],
    store: false,
  }
  expect(check(await turn(next)).response.status).toBe('completed')
  expect(asked()[1].messages.map(({ content }: Json) => content)).toEqual([
    'my name is Ada\n\nSummary of the conversation so far:\na short summary\n\nwho am I?',
  ])
  const missing = await post('/v1/responses/compact', { input })
  expect([missing.status, ((await missing.json()) as ResponseJson).error.param]).toEqual([400, 'model'])
  const stored = await create({ input: 'one' })
  const chained = await post('/v1/responses/compact', {
    model: 'test-model',
    previous_response_id: stored.id,
  })
  expect(((await chained.json()) as ResponseJson).output).toHaveLength(2)
})

test('sockets are limited per tenant', async () => {
  const { gateway } = await openResponses(chatAnswer('x'), {
    plugins: { auth: { tenantKeys: ['a:key-a', 'b:key-b'] }, responses: { socket: { maxPerTenant: 1 } } },
  })
  await connect(gateway.url, 'test-model', 'key-a')
  await expect(connect(gateway.url, 'test-model', 'key-a')).rejects.toThrow('429')
  const other = await connect(gateway.url, 'test-model', 'key-b')
  expect(check(await other.turn({ input: 'x', store: false })).response.status).toBe('completed')
})
