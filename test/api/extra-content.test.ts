/** Opaque data of a vendor: clients of each format get it, and workers of each format get it back in the next turn. */
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

// Every pair of formats: what a worker of one format says about a text, or about reasoning in front of a call, comes back to it.

type Said = 'text' | 'reasoning'
const FORMATS = ['chat', 'responses', 'messages'] as const
type Format = (typeof FORMATS)[number]
const PATHS = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' } as const
const EXTRA = { extra_content: SIGNED }

const answers: Record<Format, (said: Said) => object> = {
  chat: (said) => ({
    id: 'c',
    created: 1,
    model: 'test-model',
    choices: [
      said === 'text'
        ? { index: 0, finish_reason: 'stop', message: { content: 'Sunny.', ...EXTRA } }
        : {
            index: 0,
            finish_reason: 'tool_calls',
            message: { content: null, reasoning_content: 'Hm.', ...EXTRA, tool_calls: [plainCall] },
          },
    ],
  }),
  responses: (said) => ({
    id: 'resp_up',
    object: 'response',
    created_at: 1,
    model: 'test-model',
    status: 'completed',
    output:
      said === 'text'
        ? [
            {
              type: 'message',
              id: 'm',
              role: 'assistant',
              content: [{ type: 'output_text', text: 'Sunny.' }],
              ...EXTRA,
            },
          ]
        : [
            { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm.' }], ...EXTRA },
            { type: 'function_call', id: 'f', call_id: 'call_1', name: 'weather', arguments: '{}' },
          ],
  }),
  messages: (said) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'test-model',
    content:
      said === 'text'
        ? [{ type: 'text', text: 'Sunny.', ...EXTRA }]
        : [
            { type: 'thinking', thinking: 'Hm.', signature: 's', ...EXTRA },
            { type: 'tool_use', id: 'call_1', name: 'weather', input: {} },
          ],
    stop_reason: said === 'text' ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
}
const plainCall = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }

/** The answer as the events of the format. */
function streamed(format: Format, answer: ResponseJson): ReturnType<typeof sseAnswer> {
  const events: ResponseJson[] = []
  if (format === 'chat') {
    const [{ message, ...choice }] = answer.choices
    events.push({ ...answer, choices: [{ ...choice, delta: message }] })
  } else if (format === 'responses') events.push({ type: 'response.completed', response: answer })
  else {
    const { content, stop_reason, stop_sequence, usage, ...head } = answer
    events.push({ type: 'message_start', message: { ...head, content: [], usage } })
    for (const [index, block] of content.entries())
      events.push(
        { type: 'content_block_start', index, content_block: block },
        { type: 'content_block_stop', index },
      )
    events.push(
      { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
      { type: 'message_stop' },
    )
  }
  const end = format === 'chat' ? ['[DONE]'] : []
  return sseAnswer([...events.map((one) => JSON.stringify(one)), ...end])
}

/** The turn of the assistant as a client of the format has it: from the whole answer, or assembled from the events. */
function turnOf(format: Format, text: string, stream: boolean): ResponseJson[] {
  const events = eventsOf(text)
  if (format === 'responses') return (stream ? events.at(-1).response : JSON.parse(text)).output
  if (format === 'messages') {
    if (!stream) return [{ role: 'assistant', content: JSON.parse(text).content }]
    const content: ResponseJson[] = []
    for (const { type, content_block: block, delta } of events)
      if (type === 'content_block_start') content.push(block)
      else if (delta?.type === 'text_delta') content.at(-1).text += delta.text
      else if (delta?.type === 'thinking_delta') content.at(-1).thinking += delta.thinking
      else if (delta?.type === 'signature_delta') content.at(-1).signature += delta.signature
    return [{ role: 'assistant', content }]
  }
  if (!stream) return [{ role: 'assistant', ...JSON.parse(text).choices[0].message }]
  const message: ResponseJson = { role: 'assistant', content: null }
  for (const { tool_calls: calls = [], ...delta } of events.flatMap(
    ({ choices }) => choices[0]?.delta ?? [],
  )) {
    Object.assign(message, delta)
    for (const { index: _, ...call } of calls)
      if (call.id === undefined) message.tool_calls.at(-1).function.arguments += call.function.arguments
      else message.tool_calls = [...(message.tool_calls ?? []), call]
  }
  return [message]
}

function bodyOf(format: Format, turns: readonly ResponseJson[]): object {
  const body = { model: 'test-model' }
  if (format === 'responses') return { ...body, input: turns, tools: [{ type: 'function', name: 'weather' }] }
  if (format === 'messages')
    return { ...body, max_tokens: 9, messages: turns, tools: [{ name: 'weather', input_schema: TOOL }] }
  const tools = [{ type: 'function', function: { name: 'weather', parameters: TOOL } }]
  return { ...body, messages: turns, tools }
}

/** What follows the turn: the result of its call, or another question. */
function nextOf(format: Format, said: Said): ResponseJson {
  if (said === 'text') return QUESTION
  if (format === 'responses') return { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }
  if (format === 'chat') return { role: 'tool', tool_call_id: 'call_1', content: 'sunny' }
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sunny' }] }
}

/** Data of the assistant's turn in a request to a worker, wherever the format has it. */
function dataIn(format: Format, body: ResponseJson): unknown[] {
  const holders = format === 'responses' ? body.input : body.messages
  const found = (one: ResponseJson) => [one, ...(Array.isArray(one.content) ? one.content : [])]
  return holders.flatMap(found).flatMap(({ extra_content: data }: ResponseJson) => data ?? [])
}

const PAIRS = FORMATS.flatMap((client) =>
  FORMATS.flatMap((worker) =>
    (['text', 'reasoning'] as const).flatMap((said) =>
      [false, true].map((stream) => ({ client, worker, said, stream })),
    ),
  ),
)
test.each(PAIRS)(
  '$said of a $worker worker, $client client, streamed: $stream',
  async ({ client, worker, said, stream }) => {
    const { post, workers } = await openResponses(undefined, {
      workers: [{ spec: { apis: [worker] } }],
      plugins: { chat: { chat: 'normalize' }, messages: {} },
    })
    const path = `POST ${PATHS[worker]}`
    workers[0].script(path, (request) => {
      const isStreamed = (request.json() as ResponseJson).stream === true
      return isStreamed ? streamed(worker, answers[worker](said)) : jsonAnswer(answers[worker](said))
    })
    const ask = async (body: object): Promise<string> => {
      const reply = await post(PATHS[client], { ...body, stream })
      const text = await reply.text()
      expect([reply.status, text]).toEqual([200, expect.any(String)])
      return text
    }
    const first = await ask({ ...bodyOf(client, [QUESTION]), ...(client === 'responses' && { store: true }) })
    const turn = turnOf(client, first, stream)
    const last = nextOf(client, said)
    // Ids of calls have the form of the client's format.
    if (client === 'messages' && said === 'reasoning')
      last.content[0].tool_use_id = turn[0].content.find(({ type }: ResponseJson) => type === 'tool_use').id
    await ask(bodyOf(client, [QUESTION, ...turn, last]))
    const asked = () => workers[0].requestsTo(path).at(-1)?.json() as ResponseJson
    expect(dataIn(worker, asked())).toEqual([SIGNED])
    if (client !== 'responses') return
    const { id } = stream ? eventsOf(first).at(-1).response : JSON.parse(first)
    await ask({ ...bodyOf(client, [last]), previous_response_id: id })
    expect(dataIn(worker, asked())).toEqual([SIGNED])
  },
)

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
