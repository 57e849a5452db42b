/** Chat completions over workers with the Messages format. */
import { expect, test } from 'vitest'
import { jsonAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { MESSAGES, openMessages, VENDOR } from './messages-fleet.ts'

const open = () => openMessages({ workers: [VENDOR], plugins: {} })
const PATH = '/v1/chat/completions'

const REPLY = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-real',
  content: [
    { type: 'text', text: 'I look.' },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'X' } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 5, cache_read_input_tokens: 4, output_tokens: 3 },
}

test('a chat request becomes a messages request, and the message a chat completion', async () => {
  const { post, workers } = await open()
  workers[0].script(MESSAGES, jsonAnswer(REPLY))
  const reply = await post(PATH, {
    model: 'test-model',
    messages: [
      { role: 'developer', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hot?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call.1', type: 'function', function: { name: 'weather', arguments: '{"city":"X"}' } },
          { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call.1', content: '30' },
      { role: 'tool', tool_call_id: 'call_2', content: '31' },
      { role: 'user', content: 'so?' },
    ],
    tools: [
      { type: 'function', function: { name: 'weather', description: 'd', parameters: { type: 'object' } } },
    ],
    tool_choice: 'required',
    parallel_tool_calls: false,
    temperature: 1.7,
    stop: ['END', ' '],
    user: 'u',
  })
  expect(workers[0].requestsTo(MESSAGES)[0].json()).toEqual({
    model: 'test-model',
    max_tokens: 8192,
    system: 'Be kind.',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hot?' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'call_1_e8b7b7b3', name: 'weather', input: { city: 'X' } },
          { type: 'tool_use', id: 'call_2', name: 'weather', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1_e8b7b7b3', content: '30' },
          { type: 'tool_result', tool_use_id: 'call_2', content: '31' },
          { type: 'text', text: 'so?' },
        ],
      },
    ],
    tools: [{ name: 'weather', description: 'd', input_schema: { type: 'object' } }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    temperature: 1,
    stop_sequences: ['END'],
    metadata: { user_id: 'u' },
  })
  expect(await reply.json()).toMatchObject({
    object: 'chat.completion',
    model: 'claude-real',
    choices: [
      {
        message: {
          role: 'assistant',
          content: 'I look.',
          tool_calls: [
            { id: 'toolu_1', type: 'function', function: { name: 'weather', arguments: '{"city":"X"}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: {
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 4 },
    },
  })
  expect(workers[0].requestsTo(MESSAGES)[0].header('x-api-key')).toBe('vendor-key')
  expect(workers[0].requestsTo(MESSAGES)[0].header('anthropic-version')).toBe('2023-06-01')
})

test('a stream of messages becomes chat chunks', async () => {
  const { post, workers } = await open()
  workers[0].script(
    MESSAGES,
    sseAnswer(
      [
        { type: 'message_start', message: { id: 'msg_1', model: 'claude-real', usage: { input_tokens: 5 } } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'He' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'llo' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'max_tokens' }, usage: { output_tokens: 2 } },
        { type: 'message_stop' },
      ].map((event) => JSON.stringify(event)),
    ),
  )
  const reply = await post(PATH, {
    model: 'test-model',
    stream: true,
    messages: [{ role: 'user', content: 'x' }],
  })
  const chunks = (await textUntilCut(reply)).split('\n\n').filter((line) => line.startsWith('data: {'))
  const choices = chunks.map(
    (line) =>
      (
        JSON.parse(line.slice(6)) as {
          choices: { delta: { content?: string }; finish_reason: string | null }[]
        }
      ).choices[0],
  )
  expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe('Hello')
  expect(choices.at(-1)?.finish_reason).toBe('length')
})

test('parameters that change the output and have no Messages equivalent are rejected', async () => {
  const { post, workers } = await open()
  for (const [body, param] of [
    [{ n: 2 }, 'n'],
    [{ response_format: { type: 'json_object' } }, 'response_format'],
    [{ regex: 'a+' }, 'response_format'],
    [
      {
        messages: [
          { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } }] },
        ],
      },
      'messages',
    ],
  ] as const) {
    const reply = await post(PATH, {
      model: 'test-model',
      messages: [{ role: 'user', content: 'x' }],
      ...body,
    })
    expect([reply.status, await reply.json()]).toMatchObject([
      400,
      { error: { code: 'unsupported_by_worker', param } },
    ])
  }
  expect(workers[0].requestsTo(MESSAGES)).toEqual([])
})

test('reasoning_effort becomes output_config.effort, and none disables thinking', async () => {
  const { post, workers } = await open()
  workers[0].script(MESSAGES, jsonAnswer(REPLY))
  const sent = async (body: object) => {
    workers[0].requests.length = 0
    await post(PATH, { model: 'test-model', messages: [{ role: 'user', content: 'x' }], ...body })
    return workers[0].requestsTo(MESSAGES)[0].json() as Record<string, unknown>
  }
  expect((await sent({ reasoning_effort: 'high' })).output_config).toEqual({ effort: 'high' })
  expect((await sent({ reasoning_effort: 'none' })).thinking).toEqual({ type: 'disabled' })
})

test('an error response of the worker keeps its status and message', async () => {
  const { post, workers } = await open()
  workers[0].script(
    MESSAGES,
    jsonAnswer(
      { type: 'error', error: { type: 'invalid_request_error', message: 'no such thing' } },
      { status: 400 },
    ),
  )
  const reply = await post(PATH, { model: 'test-model', messages: [{ role: 'user', content: 'x' }] })
  expect([reply.status, await reply.json()]).toMatchObject([400, { error: { message: 'no such thing' } }])
})

test.each([
  ['a vendor', VENDOR],
  ['an engine with the Messages format only', { spec: { apis: ['messages'] } }],
])('beta headers of a chat request reach %s', async (_kind, worker) => {
  const { post, workers } = await openMessages({ workers: [worker], plugins: {} })
  workers[0].script(MESSAGES, jsonAnswer(REPLY))
  const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
  await post(PATH, chat, { 'anthropic-beta': 'context-1m-2025-08-07' })
  await post(PATH, chat, { 'anthropic-version': '2026-10-21' })
  const sent = workers[0].requestsTo(MESSAGES).map(({ rawHeaders }) => {
    return rawHeaders.filter(([name]) => name.startsWith('anthropic-'))
  })
  expect(sent).toEqual([
    [
      ['anthropic-version', '2023-06-01'],
      ['anthropic-beta', 'context-1m-2025-08-07'],
    ],
    [['anthropic-version', '2026-10-21']],
  ])
})

const START = {
  type: 'message_start',
  message: { id: 'msg_1', model: 'claude-real', usage: { input_tokens: 5, output_tokens: 1 } },
}
const block = (index: number, start: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const THINKING = block(
  0,
  { type: 'thinking', thinking: '', signature: '' },
  { type: 'thinking_delta', thinking: 'hm' },
  { type: 'thinking_delta', thinking: ', so' },
  { type: 'signature_delta', signature: 'sig-1' },
)
const call = (index: number, id: string, ...parts: string[]) =>
  block(
    index,
    { type: 'tool_use', id, name: 'weather', input: {} },
    ...parts.map((part) => ({ type: 'input_json_delta', partial_json: part })),
  )
const CALLS = [...call(1, 'toolu_1', '{"city":', '"X"}'), ...call(2, 'toolu_2')]
const frames = (events: readonly object[]) => sseAnswer(events.map((event) => JSON.stringify(event)))

interface Delta {
  content?: string
  reasoning_content?: string
  tool_calls?: { index: number; id?: string; function: { name?: string; arguments?: string } }[]
}
interface Chunk {
  choices: { delta: Delta; finish_reason: string | null }[]
  usage?: object | null
  error?: { message: string }
}

const chunksOf = (text: string) =>
  text
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Chunk)
const CHAT_REQUEST = { model: 'test-model', messages: [{ role: 'user', content: 'hot?' }] }
const STREAMED = { ...CHAT_REQUEST, stream: true, stream_options: { include_usage: true } }

test('thinking and calls of a streamed message become chat chunks, piece by piece', async () => {
  const { post, workers } = await open()
  const end = { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }
  const events = [START, { type: 'ping' }, ...THINKING, ...CALLS, end, { type: 'message_stop' }]
  workers[0].script(MESSAGES, frames(events))
  const text = await textUntilCut(await post(PATH, STREAMED))
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  const chunks = chunksOf(text)
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
  expect(deltas.flatMap(({ reasoning_content: thought }) => thought ?? [])).toEqual(['hm', ', so'])
  const calls = deltas.flatMap(({ tool_calls: some }) => some ?? [])
  expect(calls.flatMap(({ id, index, function: { name } }) => (id ? [[index, id, name]] : []))).toEqual([
    [0, 'toolu_1', 'weather'],
    [1, 'toolu_2', 'weather'],
  ])
  const written = (index: number) =>
    calls
      .filter((one) => one.index === index)
      .map((one) => one.function.arguments ?? '')
      .join('')
  expect([written(0), written(1)]).toEqual(['{"city":"X"}', '{}'])
  expect(
    chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: reason }) => reason ?? [])),
  ).toEqual(['tool_calls'])
  expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 })
})

test.each([
  ['an error event', [{ type: 'error', error: { type: 'overloaded_error', message: 'no memory' } }]],
  ['an end without message_stop', []],
])('%s of a streamed message ends the chat stream with an error', async (_what, last) => {
  const { post, workers } = await openMessages({
    workers: [VENDOR],
    plugins: {},
    kernel: { retry: { maxAttempts: 1 } },
  })
  const events = [START, ...THINKING, ...CALLS]
  for (let count = 0; count <= events.length; count++) {
    const steps = events.slice(0, count).map((event) => `data: ${JSON.stringify(event)}\n\n`)
    const ends = last.map((event) => `data: ${JSON.stringify(event)}\n\n`)
    const headers = { 'content-type': 'text/event-stream' }
    workers[0].script(MESSAGES, streamAnswer([...steps, { waitMs: 15 }, ...ends], { headers }))
    const reply = await post(PATH, STREAMED)
    const text = await textUntilCut(reply)
    expect(text, `after ${count}`).not.toContain('[DONE]')
    expect(text, `after ${count}`).not.toMatch(/"finish_reason":"/)
    if (reply.status === 200) expect(chunksOf(text).at(-1)?.error?.message, text).toBeTruthy()
    else expect((JSON.parse(text) as Chunk).error?.message).toBeTruthy()
  }
})

test('a rate-limited or overloaded vendor is reported with its Retry-After', async () => {
  const { post, workers } = await openMessages({
    workers: [VENDOR],
    plugins: {},
    kernel: { retry: { maxAttempts: 1 } },
  })
  for (const status of [429, 529]) {
    const said = { type: 'error', error: { type: 'rate_limit_error', message: 'later' } }
    workers[0].script(MESSAGES, jsonAnswer(said, { status, headers: { 'retry-after': '9' } }))
    const reply = await post(PATH, STREAMED)
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([status, '9'])
    expect(await reply.json()).toMatchObject({ error: { message: 'later' } })
  }
})
