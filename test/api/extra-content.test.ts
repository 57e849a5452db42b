/** Opaque data of a vendor on a tool call: clients of each format get it, and the worker gets it back in the next turn. */
import { describe, expect, test } from 'vitest'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openResponses, type ResponseJson } from './responses/responses-fleet.ts'

const SIGNED = { google: { thought_signature: 'c2lnbmF0dXJl' } }
const call = (extra: object = SIGNED) => ({
  index: 0,
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Rome"}' },
  extra_content: extra,
})

/** Calls the tool once per user message. */
const callsOnce =
  (extra: object = SIGNED): Script =>
  (request) => {
    const { messages, stream } = request.json() as ResponseJson
    const isUser = messages.at(-1).role === 'user'
    const message = isUser ? { content: null, tool_calls: [call(extra)] } : { content: 'Sunny.' }
    const choice = { index: 0, finish_reason: isUser ? 'tool_calls' : 'stop' }
    const base = { id: 'c', created: 1, model: 'test-model' }
    if (stream !== true) return jsonAnswer({ ...base, choices: [{ ...choice, message }] })
    const chunks = [
      { ...choice, finish_reason: null, delta: message },
      { ...choice, delta: {} },
    ]
    return sseAnswer([...chunks.map((one) => JSON.stringify({ ...base, choices: [one] })), '[DONE]'])
  }

const open = (extra?: object) =>
  openResponses(callsOnce(extra), { plugins: { chat: { chat: 'normalize' }, messages: {} } })

/** Data events of a stream. */
const eventsOf = (text: string): ResponseJson[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data))

const TOOL = { type: 'object', properties: { city: { type: 'string' } } }
const QUESTION = { role: 'user', content: 'How is the weather in Rome?' }

describe.each([false, true])('streamed: %s', (stream) => {
  test('chat', async () => {
    const { post, asked } = await open()
    const tools = [{ type: 'function', function: { name: 'weather', parameters: TOOL } }]
    const body = { model: 'test-model', stream, tools }
    const first = await (await post('/v1/chat/completions', { ...body, messages: [QUESTION] })).text()
    const calls = stream
      ? eventsOf(first).flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      : JSON.parse(first).choices[0].message.tool_calls
    expect(calls[0].extra_content).toEqual(SIGNED)
    await post('/v1/chat/completions', {
      ...body,
      messages: [
        QUESTION,
        { role: 'assistant', content: null, tool_calls: [call()] },
        { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      ],
    })
    expect(asked().at(-1).messages[1].tool_calls[0].extra_content).toEqual(SIGNED)
  })

  test.each([false, true])('responses (stored: %s)', async (store) => {
    const { post, asked } = await open()
    const tools = [{ type: 'function', name: 'weather', parameters: TOOL }]
    const body = { model: 'test-model', stream, store, tools }
    const first = await (await post('/v1/responses', { ...body, input: [QUESTION] })).text()
    const response = stream ? eventsOf(first).at(-1).response : JSON.parse(first)
    expect(response.output[0]).toMatchObject({ type: 'function_call', extra_content: SIGNED })
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }
    const next = store
      ? { previous_response_id: response.id, input: [result] }
      : { input: [QUESTION, ...response.output, result] }
    await (await post('/v1/responses', { ...body, ...next })).text()
    expect(asked().at(-1).messages[1].tool_calls[0].extra_content).toEqual(SIGNED)
  })

  test('messages', async () => {
    const { post, asked } = await open()
    const tools = [{ name: 'weather', input_schema: TOOL }]
    const body = { model: 'test-model', max_tokens: 9, stream, tools }
    const first = await (await post('/v1/messages', { ...body, messages: [QUESTION] })).text()
    const block = stream
      ? eventsOf(first).find(({ type }) => type === 'content_block_start').content_block
      : JSON.parse(first).content[0]
    expect(block).toMatchObject({ type: 'tool_use', extra_content: SIGNED })
    const result = { type: 'tool_result', tool_use_id: block.id, content: 'sunny' }
    await post('/v1/messages', {
      ...body,
      messages: [QUESTION, { role: 'assistant', content: [block] }, { role: 'user', content: [result] }],
    })
    expect(asked().at(-1).messages[1].tool_calls[0].extra_content).toEqual(SIGNED)
  })
})

/** Answers each request with a signed text. */
const signsText: Script = (request) => {
  const { stream } = request.json() as ResponseJson
  const message = { content: 'Sunny.', extra_content: SIGNED }
  const base = { id: 'c', created: 1, model: 'test-model' }
  const choice = { index: 0, finish_reason: 'stop' }
  if (stream !== true) return jsonAnswer({ ...base, choices: [{ ...choice, message }] })
  return sseAnswer([JSON.stringify({ ...base, choices: [{ ...choice, delta: message }] }), '[DONE]'])
}

describe.each([false, true])('data about the text of a turn (streamed: %s)', (stream) => {
  const openSigned = () => openResponses(signsText, { plugins: { chat: { chat: 'normalize' } } })

  test('chat', async () => {
    const { post, asked } = await openSigned()
    const body = { model: 'test-model', stream }
    const first = await (await post('/v1/chat/completions', { ...body, messages: [QUESTION] })).text()
    const found = stream
      ? eventsOf(first).find(({ choices }) => choices[0]?.delta.extra_content !== undefined).choices[0].delta
      : JSON.parse(first).choices[0].message
    expect(found.extra_content).toEqual(SIGNED)
    const answer = { role: 'assistant', content: 'Sunny.', extra_content: SIGNED }
    await post('/v1/chat/completions', { ...body, messages: [QUESTION, answer, QUESTION] })
    expect(asked().at(-1).messages[1]).toEqual(answer)
  })

  test.each([false, true])('responses (stored: %s)', async (store) => {
    const { post, asked } = await openSigned()
    const body = { model: 'test-model', stream, store }
    const first = await (await post('/v1/responses', { ...body, input: [QUESTION] })).text()
    const response = stream ? eventsOf(first).at(-1).response : JSON.parse(first)
    expect(response.output[0]).toMatchObject({ type: 'message', extra_content: SIGNED })
    const next = store
      ? { previous_response_id: response.id, input: [QUESTION] }
      : { input: [QUESTION, ...response.output, QUESTION] }
    await (await post('/v1/responses', { ...body, ...next })).text()
    expect(asked().at(-1).messages[1]).toMatchObject({ content: 'Sunny.', extra_content: SIGNED })
  })
})

const LONG = { google: { thought_signature: 'x'.repeat(70_000) } }

test('longer data of a worker is a failure of the worker, of a client an error of the client', async () => {
  const { post } = await open(LONG)
  const tools = [{ type: 'function', function: { name: 'weather', parameters: TOOL } }]
  const answered = await post('/v1/chat/completions', { model: 'test-model', tools, messages: [QUESTION] })
  expect(answered.status).toBe(502)
  expect(await answered.json()).toMatchObject({ error: { code: 'worker_extra_content_too_long' } })
  const sent = await post('/v1/chat/completions', {
    model: 'test-model',
    messages: [
      { role: 'assistant', content: null, tool_calls: [call(LONG)] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ],
  })
  expect(sent.status).toBe(400)
  expect(await sent.json()).toMatchObject({ error: { code: 'extra_content_too_long' } })
})
