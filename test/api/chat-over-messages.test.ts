/** Chat completions over workers that speak Messages: the other direction of the translation. */
import { expect, test } from 'vitest'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { MESSAGES, openMessages, VENDOR } from './messages-fleet.ts'

const open = () => openMessages({ workers: [VENDOR], plugins: { 'messages-engine': {} } })
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

test('messages §9 a chat request becomes a messages request, and the message a chat completion', async () => {
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
          { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'X' } },
          { type: 'tool_use', id: 'call_2', name: 'weather', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1', content: '30' },
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

test('messages §9 a stream of messages is told as chat chunks', async () => {
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
  const chunks = (await reply.text()).split('\n\n').filter((line) => line.startsWith('data: {'))
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

test('messages §9 what the format has no words for is refused, not dropped, where the answer would differ', async () => {
  const { post, workers } = await open()
  for (const [body, param] of [
    [{ n: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
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

test('messages §3.5 efforts and reasoning', async () => {
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

test('messages §9.3 refusals of the worker keep their status and words', async () => {
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
  ['an engine that speaks nothing else', { spec: { apis: ['messages'] } }],
])('messages §2 betas of a chat request reach %s', async (_kind, worker) => {
  const { post, workers } = await openMessages({ workers: [worker], plugins: { 'messages-engine': {} } })
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
