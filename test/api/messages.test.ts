/** POST /v1/messages by translation for chat workers: requests, responses, validation, errors. */
import { expect, test } from 'vitest'
import { dropAnswer, hangAnswer, jsonAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import {
  accumulate,
  CHAT,
  HELLO,
  MESSAGES,
  NATIVE,
  openMessages,
  readEvents,
  VENDOR,
} from './messages-fleet.ts'

interface Envelope {
  type: string
  error: { type: string; message: string }
  request_id: string
}

const completion = (
  message: object,
  more: object = {},
  usage: object = { prompt_tokens: 9, completion_tokens: 3 },
) =>
  jsonAnswer({
    id: 'c1',
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop', ...more }],
    usage,
  })

const DONE = 'data: [DONE]\n\n'
const chunk = (delta: object, reason: string | null = null, more: object = {}) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason, ...more }] })
const usageChunk = (usage: object) => JSON.stringify({ id: 'c', model: 'm', choices: [], usage })

const WEATHER = {
  name: 'weather',
  description: 'Looks out of the window',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
}

async function sentFor(body: Record<string, unknown>, messages: Record<string, unknown> = {}) {
  const fleet = await openMessages({ messages })
  const reply = await fleet.create(body)
  expect(reply.status, await reply.clone().text()).toBe(200)
  return fleet.workers[0].requestsTo(CHAT)[0].json() as Record<string, unknown> & {
    messages: Record<string, unknown>[]
  }
}

test('the documented example returns a message', async () => {
  const { create, workers } = await openMessages()
  workers[0].script(CHAT, completion({ role: 'assistant', content: 'Hi' }))
  const reply = await create({}, { 'x-api-key': 'any', 'anthropic-version': '2023-06-01' })
  expect(reply.status).toBe(200)
  expect(await reply.json()).toEqual({
    id: expect.stringMatching(/^msg_[0-9a-f]{24}$/),
    type: 'message',
    role: 'assistant',
    model: 'test-model',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 9, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 3 },
  })
  expect(reply.headers.get('request-id')).toBe(reply.headers.get('x-request-id'))
  expect(workers[0].requestsTo(CHAT)[0].json()).toEqual({
    model: 'test-model',
    messages: [{ role: 'user', content: 'Hello' }],
    max_tokens: 64,
  })
})

test('a valid key in either header is accepted, and a 401 has x-should-retry false', async () => {
  const { create } = await openMessages({ plugins: { auth: { apiKey: 'right' } } })
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  expect((await create({}, bearer('right'))).status).toBe(200)
  expect((await create({}, { 'x-api-key': 'right' })).status).toBe(200)
  expect((await create({}, { ...bearer('right'), 'x-api-key': 'wrong' })).status).toBe(200)
  expect((await create({}, { ...bearer('wrong'), 'x-api-key': 'right' })).status).toBe(200)
  for (const headers of [{}, { ...bearer('wrong'), 'x-api-key': 'wrong' }]) {
    const reply = await create({}, headers)
    const body = (await reply.json()) as Envelope
    expect([reply.status, body.type, body.error.type]).toEqual([401, 'error', 'authentication_error'])
    expect(body.request_id).toMatch(/^req_/)
    expect(reply.headers.get('request-id')).toBe(body.request_id)
    expect(reply.headers.get('x-should-retry')).toBe('false')
  }
})

test('any version date and beta are accepted, an invalid version is a 400', async () => {
  const { create, post } = await openMessages()
  const status = async (headers: Record<string, string>) => (await create({}, headers)).status
  expect(await status({ 'anthropic-version': '2023-06-01' })).toBe(200)
  expect(
    await status({ 'anthropic-version': '2026-10-21', 'anthropic-beta': 'never-heard-2030-01-01' }),
  ).toBe(200)
  expect(await status({ 'anthropic-version': 'abc' })).toBe(400)
  const body = {
    model: 'test-model',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'x' }],
    betas: ['b'],
  }
  expect((await post('/v1/messages?beta=true', body)).status).toBe(200)
  expect((await post('/v1/messages/count_tokens?beta=true', body)).status).toBe(200)
})

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const refused: readonly (readonly [body: Record<string, unknown>, path: string])[] = [
  [{ model: undefined }, 'model'],
  [{ model: '' }, 'model'],
  [{ max_tokens: undefined }, 'max_tokens'],
  [{ max_tokens: 0 }, 'max_tokens'],
  [{ max_tokens: '5' }, 'max_tokens'],
  [{ messages: undefined }, 'messages'],
  [{ messages: [] }, 'messages'],
  [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role'],
  [{ messages: [{ role: 'user' }] }, 'messages.0.content'],
  [user([{ type: 'text', text: 'a' }, { type: 'hologram' }]), 'messages.0.content.1.type'],
  [user([{ text: 'a' }]), 'messages.0.content.0.type'],
  [{ tool_choice: { type: 'any' } }, 'tool_choice'],
  [{ tools: [WEATHER], tool_choice: { type: 'tool', name: 'x' } }, 'tool_choice.name'],
  [{ tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }] }, 'tools.0'],
  [
    { tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }], mcp_servers: [{ name: 'b' }] },
    'tools.0.mcp_server_name',
  ],
  [{ thinking: { type: 'enabled', budget_tokens: 512 } }, 'thinking.budget_tokens'],
  [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, 'thinking.budget_tokens'],
  [{ tools: [WEATHER, WEATHER] }, 'tools.1.name'],
  [{ top_p: 2 }, 'top_p'],
  [{ top_k: -7 }, 'top_k'],
  [
    user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '*' } }]),
    'messages.0.content.0.source.data',
  ],
  [
    user([{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'aa' } }]),
    'messages.0.content.0.source.media_type',
  ],
  [user([{ type: 'image', source: { type: 'file', file_id: 'f' } }]), 'messages.0.content.0.source.type'],
  [
    user([{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aa' } }]),
    'messages.0.content.0.source.type',
  ],
]

test('an invalid field is rejected by path', async () => {
  const { create, workers } = await openMessages()
  for (const [body, path] of refused) {
    const reply = await create(body)
    const { error } = (await reply.json()) as Envelope
    expect([reply.status, error.type], path).toEqual([400, 'invalid_request_error'])
    expect(error.message.startsWith(`${path}: `), error.message).toBe(true)
  }
  expect(workers[0].requests).toEqual([])
})

test('invalid JSON, too large bodies and unknown routes have the Messages error format', async () => {
  const { post, get } = await openMessages({ kernel: { http: { maxBodyBytes: 2_000 } } })
  const envelopeOf = async (reply: Response) => [reply.status, ((await reply.json()) as Envelope).error.type]
  expect(await envelopeOf(await post('/v1/messages', '{"model":'))).toEqual([400, 'invalid_request_error'])
  expect(await envelopeOf(await post('/v1/messages', 'x'.repeat(3_000)))).toEqual([413, 'request_too_large'])
  expect(await envelopeOf(await get('/v1/messages'))).toEqual([405, 'invalid_request_error'])
  expect(await envelopeOf(await post('/v1/messages/batches', {}))).toEqual([404, 'not_found_error'])
  expect((await get('/v1/messages/batches')).headers.get('request-id')).toMatch(/^req_/)
})

test('an unknown model is a not_found_error, a model without a ready worker an overloaded_error', async () => {
  const { create } = await openMessages()
  const unknown = await create({ model: 'nobody-has-it' })
  expect([unknown.status, ((await unknown.json()) as Envelope).error.type]).toEqual([404, 'not_found_error'])
  const broken = await openMessages({
    kernel: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, openMs: 30_000 } },
  })
  broken.workers[0].script(CHAT, dropAnswer())
  await broken.create()
  const open = await broken.create()
  expect([open.status, ((await open.json()) as Envelope).error.type]).toEqual([503, 'overloaded_error'])
  expect(Number(open.headers.get('retry-after'))).toBeGreaterThan(0)
  const empty = await openMessages({ workers: [] })
  const none = await empty.create()
  expect([none.status, ((await none.json()) as Envelope).error.type]).toEqual([503, 'overloaded_error'])
})

test.each([
  ['a vendor', VENDOR],
  ['an engine with the Messages route', NATIVE],
])('messages over %s: unknown is a not_found_error, not ready an overloaded_error', async (_kind, worker) => {
  const { create, workers } = await openMessages({
    workers: [worker],
    kernel: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, openMs: 30_000 } },
  })
  const unknown = await create({ model: 'nobody-has-it' })
  expect([unknown.status, ((await unknown.json()) as Envelope).error.type]).toEqual([404, 'not_found_error'])
  workers[0].script(MESSAGES, dropAnswer())
  await create()
  const open = await create()
  expect([open.status, ((await open.json()) as Envelope).error.type]).toEqual([503, 'overloaded_error'])
  expect(Number(open.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('messages over chat workers: a request is retried on another worker before the first byte, and not after it', async () => {
  const { create, workers } = await openMessages({ workers: [{}, {}], kernel: { policy: 'round_robin' } })
  const asked = () => workers.flatMap((worker) => worker.requestsTo(CHAT)).length
  for (const worker of workers) worker.script(CHAT, completion({ content: 'a' }))
  workers[0].script(CHAT, jsonAnswer({ error: { message: 'no' } }, { status: 503 }))
  for (let nth = 0; nth < 2; nth++) expect((await create()).status).toBe(200)
  const before = asked()
  expect(before).toBeGreaterThan(2)
  const cut = sseAnswer([chunk({ content: 'a' }), { waitMs: 30 }, { drop: 'reset' }])
  for (const worker of workers) worker.script(CHAT, cut)
  expect(readEvents(await (await create({ stream: true })).text()).at(-1)?.type).toBe('error')
  expect(asked()).toBe(before + 1)
})

test('a limit of the gateway is a rate_limit_error with Retry-After', async () => {
  const { create, workers, gateway } = await openMessages({
    plugins: { limits: { maxConcurrentRequests: 1, queueSize: 0 } },
  })
  workers[0].script(CHAT, hangAnswer())
  const controller = new AbortController()
  const init = { method: 'POST', body: JSON.stringify(HELLO), signal: controller.signal }
  const held = fetch(`${gateway.url}/v1/messages`, init).catch(() => null)
  await workers[0].received(CHAT)
  const reply = await create()
  expect([reply.status, ((await reply.json()) as Envelope).error.type]).toEqual([429, 'rate_limit_error'])
  expect(reply.headers.get('retry-after')).not.toBeNull()
  controller.abort()
  await held
})

test('unknown members and vendor-only settings are accepted', async () => {
  const sent = await sentFor({
    context_management: { edits: [] },
    betas: ['x'],
    container: 'c',
    service_tier: 'auto',
    inference_geo: 'eu',
    cache_control: { type: 'ephemeral' },
    safeguards: {},
    rid: 'r',
    metadata: { user_id: 'u1' },
  })
  expect(Object.keys(sent).sort()).toEqual(['max_tokens', 'messages', 'model', 'user'])
  expect(sent.user).toBe('u1')
})

test('system as text and as blocks give one prompt, without the billing line', async () => {
  const billing = 'x-anthropic-billing-header: cc=1'
  const asText = await sentFor({ system: `${billing}\nBe kind.\nBe brief.` })
  const asBlocks = await sentFor({
    system: [
      { type: 'text', text: billing },
      { type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'Be brief.' },
    ],
  })
  expect(asText.messages[0]).toEqual({ role: 'system', content: 'Be kind.\nBe brief.' })
  expect(asBlocks.messages).toEqual(asText.messages)
})

test('a system message inside the conversation becomes a note in its place', async () => {
  const { messages } = await sentFor({
    messages: [
      { role: 'user', content: 'a' },
      { role: 'system', content: [{ type: 'text', text: 'be calm' }] },
    ],
  })
  expect(messages).toEqual([{ role: 'user', content: 'a\n\n<system>\nbe calm\n</system>' }])
})

test('tool results come first and in order, and failures are marked in the text', async () => {
  const { messages } = await sentFor({
    tools: [WEATHER],
    messages: [
      { role: 'user', content: 'hot?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'toolu_a', name: 'weather', input: { city: 'X' } },
          { type: 'tool_use', id: 'toolu_b', name: 'weather', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'and?' },
          { type: 'tool_result', tool_use_id: 'toolu_b', is_error: true, content: 'no window' },
          {
            type: 'tool_result',
            tool_use_id: 'toolu_a',
            content: [
              { type: 'text', text: '30' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
            ],
          },
          { type: 'tool_result', tool_use_id: 'toolu_c' },
        ],
      },
    ],
  })
  const call = (id: string, text: string) => ({
    id,
    type: 'function',
    function: { name: 'weather', arguments: text },
  })
  expect(messages).toEqual([
    { role: 'user', content: 'hot?' },
    { role: 'assistant', content: 'I look.', tool_calls: [call('a', '{"city":"X"}'), call('b', '{}')] },
    { role: 'tool', tool_call_id: 'b', content: 'Error: no window' },
    { role: 'tool', tool_call_id: 'a', content: '30' },
    { role: 'tool', tool_call_id: 'c', content: '' },
    { role: 'user', content: '[image: image/png, 2 bytes]\nand?' },
  ])
})

test('images by data and by URL are translated, and documents become text between title lines', async () => {
  const { messages } = await sentFor(
    user([
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
      {
        type: 'document',
        title: 'Notes',
        context: 'old',
        source: { type: 'text', media_type: 'text/plain', data: 'abc' },
      },
      { type: 'search_result', title: 'T', source: 'https://s', content: [{ type: 'text', text: 'found' }] },
      { type: 'text', text: 'what?' },
    ]),
  )
  expect(messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'https://x/y.png' } },
        { type: 'text', text: '[document: Notes]\nold\nabc\n[end of document: Notes]' },
        { type: 'text', text: 'T\nhttps://s\nfound' },
        { type: 'text', text: 'what?' },
      ],
    },
  ])
  const pdf = user([
    {
      type: 'document',
      title: 'p.pdf',
      source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
    },
  ])
  expect((await sentFor(pdf, { pdf: 'file' })).messages[0].content).toEqual([
    { type: 'file', file: { file_data: 'data:application/pdf;base64,aGk=', filename: 'p.pdf' } },
  ])
})

test('tools, tool_choice and the output format are translated', async () => {
  const tools = [WEATHER, { name: 'later', defer_loading: true }, { type: 'bash_20250124', name: 'bash' }]
  const choose = async (choice: object) =>
    (await sentFor({ tools, tool_choice: choice })) as Record<string, unknown>
  const auto = await choose({ type: 'auto', disable_parallel_tool_use: true })
  expect([auto.tool_choice, auto.parallel_tool_calls]).toEqual(['auto', false])
  expect(auto.tools).toEqual([
    {
      type: 'function',
      function: { name: 'weather', description: WEATHER.description, parameters: WEATHER.input_schema },
    },
  ])
  expect((await choose({ type: 'any' })).tool_choice).toBe('required')
  expect((await choose({ type: 'none' })).tool_choice).toBe('none')
  expect((await choose({ type: 'tool', name: 'weather' })).tool_choice).toEqual({
    type: 'function',
    function: { name: 'weather' },
  })
  const schema = { type: 'object', properties: { a: { type: 'number' } } }
  const sent = await sentFor({ output_config: { effort: 'max', format: { type: 'json_schema', schema } } })
  expect(sent.response_format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'output', schema, strict: true },
  })
  expect(sent.reasoning_effort).toBe('high')
})

test('ignored members and tools are listed in a header, streamed and non-streamed', async () => {
  const { create, workers } = await openMessages()
  workers[0].script(CHAT, completion({ role: 'assistant', content: 'Hi' }))
  const vendor = { type: 'web_search_20250305', name: 'web_search' }
  const more = { context_management: {}, service_tier: 'auto', tools: [WEATHER, vendor] }
  const warning =
    'members_ignored; count=3; names="context_management service_tier tools.web_search_20250305"'
  for (const stream of [false, true]) {
    const reply = await create({ ...more, stream })
    expect([reply.status, reply.headers.get('x-weir-warning')]).toEqual([200, warning])
    await reply.text()
  }
  expect((await create({})).headers.get('x-weir-warning')).toBeNull()
})

test.each([
  [{ output_config: { format: { type: 'grammar' } } }, 'output_config.format.type'],
  [{ output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema'],
  [{ output_format: 'json' }, 'output_format.type'],
  [{ output_config: { effort: 3 } }, 'output_config.effort'],
])('an output setting that cannot be translated is rejected by name: %j', async (body, field) => {
  const { create } = await openMessages()
  const reply = await create(body)
  expect(reply.status).toBe(400)
  expect(await reply.text()).toContain(`"${field}: `)
})

test('thinking becomes template arguments, and thinking in the history reasoning_content', async () => {
  const kwargs = async (thinking?: object) =>
    (await sentFor({ max_tokens: 4_096, thinking })).chat_template_kwargs
  expect(await kwargs()).toBeUndefined()
  expect(await kwargs({ type: 'adaptive' })).toEqual({ enable_thinking: true, thinking: true })
  expect(await kwargs({ type: 'enabled', budget_tokens: 2_048 })).toEqual({
    enable_thinking: true,
    thinking: true,
  })
  expect(await kwargs({ type: 'disabled' })).toEqual({ enable_thinking: false, thinking: false })
  const { messages } = await sentFor({
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: '' },
          { type: 'redacted_thinking', data: 'xxx' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: 'c' },
    ],
  })
  expect(messages[1]).toEqual({ role: 'assistant', content: 'b', reasoning_content: 'hm' })
})

test('a trailing assistant turn is continued, and adjacent turns of one role are merged', async () => {
  const sent = await sentFor({
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'The answer is ' },
    ],
    top_k: 4,
    top_p: 0.5,
    temperature: 1.2,
    stop_sequences: ['END'],
  })
  expect(sent).toMatchObject({
    messages: [
      { role: 'user', content: 'a\nb' },
      { role: 'assistant', content: 'The answer is' },
    ],
    continue_final_message: true,
    add_generation_prompt: false,
    top_k: 4,
    top_p: 0.5,
    temperature: 1.2,
    stop: ['END'],
  })
})

test('calls that a gateway has run become calls and results', async () => {
  const { messages } = await sentFor({
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'look', server_name: 's', input: { x: 1 } },
          {
            type: 'mcp_tool_result',
            tool_use_id: 'mcptoolu_1',
            is_error: false,
            content: [{ type: 'text', text: 'r' }],
          },
          { type: 'text', text: 'done' },
        ],
      },
      { role: 'user', content: 'b' },
    ],
  })
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
  expect(messages[2]).toEqual({ role: 'tool', tool_call_id: 'mcptoolu_1', content: 'r' })
  expect(messages[3]).toEqual({ role: 'assistant', content: 'done' })
})

const ends: readonly (readonly [message: object, more: object, want: object])[] = [
  [{ content: 'a' }, { matched_stop: 'END' }, { stop_reason: 'stop_sequence', stop_sequence: 'END' }],
  [{ content: 'a' }, { stop_reason: 'other' }, { stop_reason: 'end_turn', stop_sequence: null }],
  [{ content: 'a' }, { finish_reason: 'length' }, { stop_reason: 'max_tokens', stop_sequence: null }],
  [{ content: 'a' }, { finish_reason: 'content_filter' }, { stop_reason: 'refusal' }],
  [{ refusal: 'no' }, {}, { stop_reason: 'refusal', content: [{ type: 'text', text: 'no' }] }],
  [
    {
      content: ' \n',
      tool_calls: [{ id: 'call_1', function: { name: 'weather', arguments: '{"city":"X"}' } }],
    },
    {},
    {
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', id: 'toolu_call_1', name: 'weather', input: { city: 'X' } }],
    },
  ],
  [
    { tool_calls: [{ id: 'f.0:1', function: { name: 'weather', arguments: '' } }] },
    { finish_reason: 'tool_calls' },
    {
      stop_reason: 'tool_use',
      content: [
        { type: 'tool_use', id: expect.stringMatching(/^toolu_x_[\w-]+$/), name: 'weather', input: {} },
      ],
    },
  ],
  [
    { tool_calls: [{ id: 'c', function: { name: 'weather', arguments: '{"city":"Berl' } }] },
    { finish_reason: 'length' },
    {
      stop_reason: 'max_tokens',
      content: [{ type: 'tool_use', id: 'toolu_c', name: 'weather', input: {} }],
    },
  ],
  [
    { reasoning_content: 'hm', content: 'a' },
    {},
    {
      content: [
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'text', text: 'a' },
      ],
    },
  ],
]

test.each(ends)('stop reasons and content, non-streamed: row %#', async (message, more, want) => {
  const { create, workers } = await openMessages()
  workers[0].script(CHAT, completion(message, more))
  const reply = await create({ stop_sequences: ['END'], tools: [WEATHER] })
  expect(await reply.json()).toMatchObject(want)
})

test('the worker gets the id of a call as it sent it', async () => {
  const { create, workers } = await openMessages()
  const id = 'functions.weather:0'
  workers[0].script(
    CHAT,
    completion({ tool_calls: [{ id, function: { name: 'weather', arguments: '{}' } }] }),
  )
  const first = (await (await create({ tools: [WEATHER] })).json()) as { content: { id: string }[] }
  await create({
    tools: [WEATHER],
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: first.content[0].id, content: '30' }] },
    ],
  })
  const { messages } = workers[0].requestsTo(CHAT)[1].json() as { messages: Record<string, unknown>[] }
  expect(messages[2].tool_call_id).toBe(id)
  expect((messages[1].tool_calls as { id: string }[])[0].id).toBe(id)
})

test('cached tokens are not part of input_tokens; missing usage is estimated', async () => {
  const { create, workers } = await openMessages()
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 7,
    prompt_tokens_details: { cached_tokens: 30 },
    completion_tokens_details: { reasoning_tokens: 2 },
  }
  workers[0].script(CHAT, completion({ content: 'a' }, {}, usage))
  expect(await (await create()).json()).toMatchObject({
    usage: {
      input_tokens: 70,
      cache_read_input_tokens: 30,
      cache_creation_input_tokens: 0,
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 2 },
    },
  })
  workers[0].script(
    CHAT,
    jsonAnswer({ choices: [{ index: 0, message: { content: 'abcdefgh' }, finish_reason: 'stop' }] }),
  )
  expect(await (await create()).json()).toMatchObject({
    usage: { input_tokens: 2, output_tokens: 2, estimated: true },
  })
})

test("a worker's rejection of images is relayed in the Messages error format", async () => {
  const { create, workers } = await openMessages()
  const said = 'this model does not support image input'
  workers[0].script(CHAT, jsonAnswer({ error: { message: said } }, { status: 400 }))
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
  const reply = await create(user([image]))
  expect([reply.status, ((await reply.json()) as Envelope).error]).toEqual([
    400,
    { type: 'invalid_request_error', message: said },
  ])
})

test('content of a wrong type is a 400 that names both forms', async () => {
  const { create } = await openMessages()
  const reply = await create({ messages: [{ role: 'user', content: 5 }] })
  expect(await reply.json()).toMatchObject({
    error: { message: 'messages.0.content: must be a string or an array (got 5)' },
  })
})

test('a hundred deltas in each of a thousand streams arrive in order', async () => {
  const { create, workers } = await openMessages()
  let startSending = () => {}
  const allAreOpen = new Promise<void>((resolve) => {
    startSending = resolve
  })
  const numbers = Array.from({ length: 100 }, (_, at) => `${at} `)
  const event = (delta: object, reason: string | null = null) => `data: ${chunk(delta, reason)}\n\n`
  const writes = [0, 25, 50, 75].map((from) => {
    return numbers
      .slice(from, from + 25)
      .map((content) => event({ content }))
      .join('')
  })
  const steps = [event({ content: '' }), { until: allAreOpen }, ...writes, event({}, 'stop'), DONE]
  workers[0].script(CHAT, streamAnswer(steps, { headers: { 'content-type': 'text/event-stream' } }))
  const replies: Response[] = []
  while (replies.length < 1_000)
    replies.push(...(await Promise.all(Array.from({ length: 50 }, () => create({ stream: true })))))
  startSending()
  const all = await Promise.all(replies.map(async (reply) => accumulate(readEvents(await reply.text()))))
  expect(new Set(all.map(({ content }) => JSON.stringify(content)))).toEqual(
    new Set([JSON.stringify([{ type: 'text', text: numbers.join('') }])]),
  )
})

test('the error for a too long prompt has the wording that clients parse', async () => {
  const { create, workers } = await openMessages()
  const vllm =
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in the messages."
  workers[0].script(CHAT, jsonAnswer({ error: { message: vllm, type: 'BadRequestError' } }, { status: 400 }))
  for (const stream of [false, true]) {
    const reply = await create({ stream })
    const { error } = (await reply.json()) as Envelope
    expect([reply.status, error.type]).toEqual([400, 'invalid_request_error'])
    expect(error.message).toContain('prompt is too long: 9000 tokens > 8192 maximum')
  }
  workers[0].script(
    CHAT,
    sseAnswer([chunk({ content: 'a' }), { waitMs: 50 }, `{"error":{"message":${JSON.stringify(vllm)}}}`]),
  )
  const events = readEvents(await (await create({ stream: true })).text())
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
})

test('an error before the first token keeps its status, in the Messages error format', async () => {
  const { create, workers } = await openMessages({ kernel: { retry: { maxAttempts: 1 } } })
  const statuses = [
    [400, 'invalid_request_error'],
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [503, 'overloaded_error'],
    [529, 'overloaded_error'],
  ] as const
  for (const [status, type] of statuses) {
    workers[0].script(
      CHAT,
      jsonAnswer({ error: { message: 'no' } }, { status, headers: { 'retry-after': '3' } }),
    )
    const reply = await create({ stream: true })
    expect([reply.status, ((await reply.json()) as Envelope).error]).toEqual([
      status,
      { type, message: 'no' },
    ])
    expect(reply.headers.get('retry-after')).toBe('3')
  }
})

test('virtual models resolve to their targets and are listed for Messages clients', async () => {
  const { create, workers, get } = await openMessages({
    plugins: {
      'virtual-models': {
        models: {
          'claude-*': { targets: [{ model: 'test-model' }] },
          'claude-opus-4': { targets: [{ model: 'test-model' }] },
        },
      },
    },
  })
  const reply = (await (await create({ model: 'claude-sonnet-9' })).json()) as { model: string }
  expect(reply.model).toBe('claude-sonnet-9')
  expect((workers[0].requestsTo(CHAT)[0].json() as { model: string }).model).toBe('test-model')
  const page = (await (await get('/v1/models?limit=1000', { 'anthropic-version': '2023-06-01' })).json()) as {
    data: Record<string, unknown>[]
  }
  expect(page).toMatchObject({
    object: 'list',
    has_more: false,
    first_id: 'test-model',
    last_id: 'claude-opus-4',
  })
  expect(page.data.map(({ id, type, display_name }) => [id, type, display_name])).toEqual([
    ['test-model', 'model', 'test-model'],
    ['claude-opus-4', 'model', 'claude-opus-4'],
  ])
  expect(page.data[0].created_at).toMatch(/^\d{4}-/)
  expect((await (await get('/v1/models')).json()) as object).not.toHaveProperty('has_more')
})

test('messages over vendors without a model list: virtual models are listed', async () => {
  const { get } = await openMessages({
    workers: [{ spec: { ...VENDOR.spec, models: [] } }],
    plugins: { 'virtual-models': { models: { 'claude-x': { targets: [{ model: 'test-model' }] } } } },
  })
  const page = await get('/v1/models', { 'anthropic-version': '2023-06-01' })
  expect([page.status, await page.json()]).toMatchObject([
    200,
    { data: [{ type: 'model', id: 'claude-x' }], has_more: false, first_id: 'claude-x' },
  ])
})

test('messages-2026-11: the probe HEAD /api/hello of agents succeeds without a key', async () => {
  const { gateway } = await openMessages({ plugins: { auth: { apiKey: 'k' } } })
  expect((await fetch(`${gateway.url}/api/hello`, { method: 'HEAD' })).status).toBe(200)
})

test('count_tokens works without max_tokens, and an estimate is marked', async () => {
  const { post, workers } = await openMessages({ plugins: { auth: { apiKey: 'k' } } })
  const body = {
    model: 'test-model',
    system: 'abcd',
    tools: [WEATHER],
    messages: [{ role: 'user', content: 'é'.repeat(8) }],
  }
  const reply = await post('/v1/messages/count_tokens', body, { 'x-api-key': 'k' })
  const { input_tokens: count } = (await reply.json()) as { input_tokens: number }
  expect(count).toBeGreaterThan(5)
  expect(reply.headers.get('x-weir-token-estimate')).toBe('true')
  expect((await post('/v1/messages/count_tokens', body)).status).toBe(401)
  expect(workers[0].requests).toEqual([])
})

test('streamed blocks equal those of the non-streamed message', async () => {
  const { create, workers } = await openMessages()
  const call = (index: number, id: string, text: string) => ({
    index,
    id,
    function: { name: 'weather', arguments: text },
  })
  const message = {
    reasoning_content: 'let me see',
    content: 'Well, 🙂 I look.',
    tool_calls: [call(0, 'call_1', '{"city":"X"}'), call(1, 'call_2', '')],
  }
  const usage = { prompt_tokens: 11, completion_tokens: 8 }
  workers[0].script(CHAT, completion(message, { finish_reason: 'tool_calls' }, usage))
  const whole = (await (await create({ tools: [WEATHER] })).json()) as Record<string, unknown>
  const deltas = [
    { role: 'assistant', content: '' },
    { reasoning_content: 'let me' },
    { reasoning_content: ' see' },
    { content: '\n' },
    { content: 'Well, 🙂' },
    { content: ' I look.' },
    { tool_calls: [call(0, 'call_1', '')] },
    { tool_calls: [{ index: 0, function: { arguments: '{"ci' } }] },
    { tool_calls: [{ index: 0, function: { arguments: 'ty":"X"}' } }] },
    { tool_calls: [call(1, 'call_2', '')] },
  ]
  const events = [
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, 'tool_calls'),
    usageChunk(usage),
    '[DONE]',
  ]
  workers[0].script(CHAT, sseAnswer(events))
  const reply = await create({ tools: [WEATHER], stream: true })
  expect(reply.headers.get('content-type')).toContain('text/event-stream')
  expect(reply.headers.get('request-id')).toMatch(/^req_/)
  const streamedMessage = accumulate(readEvents(await reply.text()))
  const blocks = whole.content as { type: string; text?: string }[]
  expect(streamedMessage.content).toEqual(
    blocks.map(({ type, text, ...rest }) =>
      type === 'text' ? { type, text: `\n${text}` } : { type, ...rest },
    ),
  )
  expect(streamedMessage.usage).toEqual(whole.usage)
  expect(streamedMessage.stop_reason).toBe('tool_use')
})

/** The provider alone makes the worker a vendor, at any address. */
const OPENAI = { spec: { runtime_type: null, provider: 'openai' } }

test("the vendor's own chat service gets only parameters that it supports", async () => {
  const { create, post, workers } = await openMessages({ workers: [OPENAI] })
  const messages = [...HELLO.messages, { role: 'assistant', content: 'It is ' }]
  const four = ['a', 'b', 'c', 'd']
  const thinking = { type: 'enabled', budget_tokens: 8000 }
  const reply = await create({ messages, stop_sequences: four, top_k: 4, max_tokens: 9000, thinking })
  expect(reply.status, await reply.clone().text()).toBe(200)
  const sent = workers[0].requestsTo(CHAT)[0].json() as object
  expect(sent).toEqual({
    model: 'test-model',
    messages: [...HELLO.messages, { role: 'assistant', content: 'It is' }],
    max_completion_tokens: 9000,
    reasoning_effort: 'medium',
    stop: four,
  })
  // Bodies in the worker's own format are relayed unchanged.
  const own = '{"model":"test-model","messages":[{"role":"user","content":"a"}],"top_k":4,"max_tokens":5}'
  expect((await post('/v1/chat/completions', own)).status).toBe(200)
  expect(workers[0].requestsTo(CHAT)[1].body.toString()).toBe(own)
})

test.each([false, true])(
  "stop sequences beyond the vendor's limit of four apply, streamed: %s",
  async (stream) => {
    const { create, workers } = await openMessages({
      workers: [OPENAI],
    })
    const four = ['a1', 'b1', 'c1', 'd1']
    const whole = (await (await create({ stop_sequences: four })).json()) as { content: { text: string }[] }
    const [word] = /\S+$/.exec(whole.content[0].text) ?? []
    const reply = await create({ stop_sequences: [...four, word], stream })
    expect(reply.status).toBe(200)
    expect(workers[0].requestsTo(CHAT)[1].json()).toMatchObject({ stop: four })
    const text = await reply.text()
    expect(text).toContain('"stop_reason":"stop_sequence"')
    expect(text).toContain(`"stop_sequence":${JSON.stringify(word)}`)
  },
)
