/** POST /v1/messages over gRPC engines: engine requests and responses. */
import { afterEach, expect, test } from 'vitest'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { until } from './grpc-fleet.ts'
import { accumulate, readEvents } from './messages-fleet.ts'
import { openGrpcMessages, shareGrpcMessages } from './messages-grpc-fleet.ts'

interface Message {
  readonly id: string
  readonly content: readonly Record<string, unknown>[]
  readonly stop_reason: string
  readonly stop_sequence: string | null
  readonly usage: Record<string, number>
}
interface Envelope {
  readonly type: string
  readonly error: { readonly type: string; readonly message: string }
  readonly request_id: string
}

const WEATHER = {
  name: 'weather',
  description: 'Looks out of the window',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
}
const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "X"}}\n</tool_call>'
const CALL_BLOCK = {
  type: 'tool_use',
  id: expect.stringMatching(/^toolu_\w+$/),
  name: 'weather',
  input: { city: 'X' },
}

const openShared = shareGrpcMessages()
let server: ToolServer | null = null
afterEach(async () => {
  await server?.close()
  server = null
})
const whole = async (reply: Response) => (await reply.json()) as Message
const streamed = async (reply: Response) => accumulate(readEvents(await reply.text()))

test('messages over gRPC: a message is returned for any headers and query', async () => {
  const { create, post, engineAnswers } = await openShared()
  const tokens = await engineAnswers('Hi there')
  const reply = await create(
    { betas: ['x'], brand_new: 1 },
    { 'anthropic-beta': 'never-heard', 'x-api-key': 'any' },
  )
  expect(await reply.json()).toEqual({
    id: expect.stringMatching(/^msg_/),
    type: 'message',
    role: 'assistant',
    model: 'test-model',
    content: [{ type: 'text', text: 'Hi there' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: expect.any(Number),
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: tokens.length,
    },
  })
  expect(reply.headers.get('request-id')).toMatch(/^req_/)
  const body = { model: 'test-model', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
  expect((await post('/v1/messages?beta=true', body)).status).toBe(200)
})

test('messages over gRPC: the stream has the valid event order and adds up to the non-streamed message', async () => {
  const { create, engineAnswers } = await openShared()
  const tokens = await engineAnswers(`<think>hm 🙂 so</think>\n\nWéll, 漢 I look.\n${CALL}`)
  const want = await whole(await create({ tools: [WEATHER] }))
  expect(want.content).toEqual([
    { type: 'thinking', thinking: 'hm 🙂 so', signature: '' },
    { type: 'text', text: expect.stringContaining('Wéll, 漢 I look.') },
    CALL_BLOCK,
  ])
  expect([want.stop_reason, want.usage.output_tokens]).toEqual(['tool_use', tokens.length])
  const events = readEvents(await (await create({ tools: [WEATHER], stream: true })).text())
  expect(events[0].type).toBe('message_start')
  expect(events.filter(({ type }) => type === 'message_delta')).toHaveLength(1)
  const streamedMessage = accumulate(events)
  expect(streamedMessage.content).toEqual(
    want.content.map((block) => (block.type === 'tool_use' ? CALL_BLOCK : block)),
  )
  expect([streamedMessage.stop_reason, streamedMessage.stop_sequence]).toEqual(['tool_use', null])
  expect(streamedMessage.usage).toMatchObject(want.usage)
  expect(JSON.stringify(events)).not.toContain('\uFFFD')
})

test('messages over gRPC: a call without arguments has input {}, and its result ends the prompt', async () => {
  const { create, engineAnswers, asked } = await openShared()
  await engineAnswers('<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>')
  const first = await streamed(await create({ tools: [WEATHER], stream: true }))
  expect(first.content).toMatchObject([{ type: 'tool_use', name: 'weather', input: {} }])
  await engineAnswers('It rains.')
  const second = await whole(
    await create({
      tools: [WEATHER],
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: first.content[0].id, content: 'rain' }],
        },
      ],
    }),
  )
  expect([second.stop_reason, second.content]).toEqual(['end_turn', [{ type: 'text', text: 'It rains.' }]])
  expect(asked()[1].tokenized.originalText).toContain('<tool_response>\nrain\n</tool_response>')
})

const bodies: readonly (readonly [what: string, body: Record<string, unknown>])[] = [
  ['a text', {}],
  [
    'a system prompt in blocks',
    {
      system: [
        { type: 'text', text: 'Be kind.' },
        { type: 'text', text: 'Be brief.' },
      ],
    },
  ],
  ['tools', { tools: [WEATHER] }],
  ['tools with tool_choice none', { tools: [WEATHER], tool_choice: { type: 'none' } }],
  [
    'one tool of two',
    { tools: [WEATHER, { name: 'other' }], tool_choice: { type: 'tool', name: 'weather' } },
  ],
  ['thinking disabled', { thinking: { type: 'disabled' } }],
  ['thinking', { thinking: { type: 'adaptive' } }],
  [
    'a trailing assistant turn',
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'The answer is ' },
      ],
    },
  ],
  [
    'calls and results',
    {
      tools: [WEATHER],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_a', name: 'weather', input: { city: 'X' } }],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_a', is_error: true, content: 'rain' }],
        },
      ],
    },
  ],
]

test("messages over gRPC: count_tokens, the engine's prompt and message_start agree", async () => {
  const { create, post, engineAnswers, asked } = await openShared()
  await engineAnswers('ok')
  for (const [what, body] of bodies) {
    const counted = await post('/v1/messages/count_tokens', {
      model: 'test-model',
      messages: [{ role: 'user', content: 'Hello' }],
      ...body,
    })
    const { input_tokens: count } = (await counted.json()) as { input_tokens: number }
    expect(counted.headers.get('x-weir-token-estimate'), what).toBeNull()
    const events = readEvents(await (await create({ ...body, stream: true })).text())
    expect(count, what).toBe(asked().at(-1)?.tokenized.inputIds.length)
    expect(events[0], what).toMatchObject({ message: { usage: { input_tokens: count } } })
    expect(accumulate(events).usage.input_tokens, what).toBe(count)
  }
  expect(asked()).toHaveLength(bodies.length)
})

test('messages over gRPC: a stop sequence split over several tokens is removed and reported', async () => {
  const { create, engineAnswers } = await openShared()
  await engineAnswers('before STOP HERE NOW after')
  const body = { stop_sequences: ['STOP HERE NOW'] }
  for (const message of [
    await whole(await create(body)),
    await streamed(await create({ ...body, stream: true })),
  ]) {
    expect(message.content).toEqual([{ type: 'text', text: 'before ' }])
    expect([message.stop_reason, message.stop_sequence]).toEqual(['stop_sequence', 'STOP HERE NOW'])
  }
  await engineAnswers('and on', { finishReason: 'length' })
  expect((await whole(await create())).stop_reason).toBe('max_tokens')
  expect((await streamed(await create({ stream: true }))).stop_reason).toBe('max_tokens')
  await engineAnswers('half', { finishReason: 'stop', matchedTokenId: 5 })
  expect(await whole(await create(body))).toMatchObject({ stop_reason: 'end_turn', stop_sequence: null })
})

test('messages over gRPC: the prompt has tool results first, errors as text, and documents between title lines', async () => {
  const { create, engineAnswers, asked } = await openShared()
  await engineAnswers('ok')
  const source = { type: 'text', media_type: 'text/plain', data: 'the text' }
  const reply = await create({
    tools: [WEATHER],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'document', title: 'Notes', source },
          { type: 'text', text: 'hot?' },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'look', server_name: 's', input: {} },
          {
            type: 'mcp_tool_result',
            tool_use_id: 'mcptoolu_1',
            is_error: false,
            content: [{ type: 'text', text: 'seen' }],
          },
          { type: 'tool_use', id: 'toolu_a', name: 'weather', input: {} },
          { type: 'tool_use', id: 'toolu_b', name: 'weather', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'and?' },
          { type: 'tool_result', tool_use_id: 'toolu_b', is_error: true, content: 'no window' },
          { type: 'tool_result', tool_use_id: 'toolu_a', content: [{ type: 'text', text: '30' }] },
        ],
      },
    ],
  })
  expect(reply.status, await reply.clone().text()).toBe(200)
  const { originalText: prompt } = asked()[0].tokenized
  const order = ['[document: Notes]', 'the text', 'hot?', 'seen', 'Error: no window', '\n30\n', 'and?']
  expect(
    order.map((text) => prompt.indexOf(text)).every((at, i, all) => at >= 0 && (i === 0 || at > all[i - 1])),
  ).toBe(true)
})

test('messages over gRPC: tool_choice and output format become engine constraints', async () => {
  const { create, engineAnswers, asked } = await openShared()
  await engineAnswers(CALL + CALL)
  const constraintOf = (at: number) => JSON.stringify(asked().at(at)?.samplingParams ?? {})
  const none = await whole(await create({ tools: [WEATHER] }))
  expect(none.content).toHaveLength(2)
  const free = constraintOf(-1)
  expect(free).not.toContain('window')
  const one = { tools: [WEATHER], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }
  expect((await whole(await create(one))).content).toEqual([CALL_BLOCK])
  expect((await streamed(await create({ ...one, stream: true }))).content).toEqual([CALL_BLOCK])
  await engineAnswers(CALL)
  const forced = await create({
    tools: [WEATHER, { name: 'b' }],
    tool_choice: { type: 'tool', name: 'weather' },
  })
  expect(constraintOf(-1)).toContain('city')
  expect(forced.status).toBe(200)
  await create({ tools: [WEATHER], tool_choice: { type: 'any' } })
  expect(constraintOf(-1)).toContain('city')
  await engineAnswers('{"a": 1}')
  const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
  const shaped = await whole(await create({ output_config: { format: { type: 'json_schema', schema } } }))
  expect(JSON.parse((asked().at(-1)?.samplingParams.jsonSchema as string) ?? 'null')).toEqual(schema)
  expect(JSON.parse(shaped.content[0].text as string)).toEqual({ a: 1 })
})

test('messages over gRPC: thinking is on, off or left to the template; thinking blocks in the history are accepted', async () => {
  const { create, engineAnswers, asked } = await openShared()
  await engineAnswers('<think>hm</think>a')
  const blocksOf = async (thinking?: object) => {
    const body = { max_tokens: 4_096, ...(thinking && { thinking }) }
    const message = await whole(await create(body))
    const streamedMessage = await streamed(await create({ ...body, stream: true }))
    expect(streamedMessage.content).toEqual(message.content)
    return message.content
  }
  const thought = { type: 'thinking', thinking: 'hm', signature: '' }
  expect((await blocksOf({ type: 'enabled', budget_tokens: 2_048 }))[0]).toEqual(thought)
  expect((await blocksOf({ type: 'adaptive' }))[0]).toEqual(thought)
  expect((await blocksOf())[0]).toEqual(thought)
  expect((await blocksOf({ type: 'adaptive', display: 'omitted' }))[0]).toEqual({ ...thought, thinking: '' })
  expect(asked().at(-1)?.tokenized.originalText).not.toContain('</think>')
  await engineAnswers('a')
  expect(await blocksOf({ type: 'disabled' })).toEqual([{ type: 'text', text: 'a' }])
  expect(asked().at(-1)?.tokenized.originalText).toContain('<think>\n\n</think>')
  const history = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [thought, { type: 'text', text: 'a' }] },
    { role: 'user', content: 'y' },
  ]
  expect((await create({ messages: history })).status).toBe(200)
})

test('messages over gRPC: images and PDF documents are rejected', async () => {
  const { create, engine } = await openShared()
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
  const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' } }
  for (const block of [image, pdf]) {
    const reply = await create({
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, block] }],
    })
    const { error } = (await reply.json()) as Envelope
    expect([reply.status, error.type]).toEqual([400, 'invalid_request_error'])
    if (block === pdf) expect(error.message).toMatch(/^messages\.0\.content\.1\.source/)
  }
  expect(engine.calls).toEqual([])
})

test('messages over gRPC: requests that differ only in the billing line have the same tokens', async () => {
  const { create, engineAnswers, asked } = await openShared()
  await engineAnswers('ok')
  const system = (billing: string) => [
    { type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${billing};` },
    { type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } },
  ]
  await create({ system: system('a1b2') })
  await create({ system: system('c3d4e5') })
  await create({ system: 'x-anthropic-billing-header: cch=ff;\nBe kind.' })
  const [first, second, third] = asked().map(({ tokenized }) => tokenized)
  expect(first.originalText).toContain('Be kind.')
  expect(first.originalText).not.toContain('billing')
  expect(second.inputIds).toEqual(first.inputIds)
  expect(third.inputIds).toEqual(first.inputIds)
})

test('messages over gRPC: an invalid field is rejected by path before the engine is called', async () => {
  const { create, engine } = await openShared()
  for (const [body, path] of [
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ messages: [] }, 'messages'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role'],
    [{ messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }, 'messages.0.content.0.type'],
    [{ tool_choice: { type: 'any' } }, 'tool_choice'],
  ] as const) {
    const reply = await create(body)
    const { error } = (await reply.json()) as Envelope
    expect([reply.status, error.message.startsWith(`${path}: `)], error.message).toEqual([400, true])
  }
  expect(engine.calls).toEqual([])
})

test.each([
  [3, 400, 'invalid_request_error'],
  [8, 429, 'rate_limit_error'],
  [13, 500, 'api_error'],
  [14, 503, 'overloaded_error'],
  [4, 504, 'timeout_error'],
] as const)('messages over gRPC: status %i before the first token is %i', async (status, expected, type) => {
  const { create, engine } = await openShared({ kernel: { retry: { maxAttempts: 1 } } })
  engine.script = () => [{ status, details: 'the reason' }]
  for (const stream of [true, false]) {
    const reply = await create({ stream })
    const body = (await reply.json()) as Envelope
    expect([reply.status, body.type, body.error]).toEqual([
      expected,
      'error',
      { type, message: 'the reason' },
    ])
    expect(reply.headers.get('request-id')).toBe(body.request_id)
  }
})

test('messages over gRPC: the error for a too long prompt has the wording that clients parse', async () => {
  const { create, engine, engineAnswers } = await openShared()
  const details = 'Input length (9000 tokens) exceeds the maximum context length of 8192 tokens.'
  engine.script = () => [{ status: 3, details }]
  for (const stream of [false, true]) {
    const reply = await create({ stream })
    const { error } = (await reply.json()) as Envelope
    expect([reply.status, error.type]).toEqual([400, 'invalid_request_error'])
    expect(error.message).toContain('prompt is too long: 9000 tokens > 8192 maximum')
  }
  await engineAnswers('a', {}, [
    { waitFor: new Promise((resolve) => setTimeout(resolve, 50)) },
    { status: 3, details },
  ])
  const events = readEvents(await (await create({ stream: true })).text())
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
  expect(JSON.stringify(events.at(-1))).toContain('prompt is too long')
})

test('messages over gRPC: cached tokens are not part of input_tokens', async () => {
  const { create, engineAnswers } = await openShared()
  await engineAnswers('<think>so it is</think>a', { promptTokens: 100, cachedTokens: 30 })
  const { usage } = await whole(await create())
  expect(usage).toMatchObject({ input_tokens: 70, cache_read_input_tokens: 30 })
  expect(usage.output_tokens).toBeGreaterThan(0)
})

test('messages over gRPC: pings are sent while the engine is silent', async () => {
  const { create, engineAnswers } = await openGrpcMessages({ messages: { pingMs: 40 } })
  const silence = new Promise((resolve) => setTimeout(resolve, 2_000))
  await engineAnswers('a b', {}, [
    { waitFor: silence },
    { complete: { finishReason: 'stop', completionTokens: 2 } },
  ])
  const events = readEvents(await (await create({ stream: true })).text())
  expect(events.filter(({ type }) => type === 'ping').length).toBeGreaterThanOrEqual(3)
  expect(accumulate(events).stop_reason).toBe('end_turn')
})

test('messages over gRPC: a client disconnect cancels the engine request and releases the load', async () => {
  const { create, get, engine, engineAnswers } = await openShared()
  await engineAnswers('a b', {}, [{ hang: true }])
  for (const stream of [true, false]) {
    const controller = new AbortController()
    const asked = create({ stream }, {}, controller.signal)
      .then((reply) => reply.text())
      .catch(() => null)
    const { cancelled } = await engine.received(stream ? 1 : 2)
    const leftAt = performance.now()
    controller.abort()
    await asked
    await cancelled
    await until(() => engine.aborted.length === (stream ? 1 : 2))
    // The bound allows for a loaded machine; without the cancellation the call would never end.
    expect(performance.now() - leftAt).toBeLessThan(20_000)
  }
  const { workers } = (await (await get('/workers')).json()) as { workers: { load: number }[] }
  expect(workers.map(({ load }) => load)).toEqual([0])
})

test('messages over gRPC: a model without a ready engine is a 503 overloaded_error with Retry-After', async () => {
  const { create, engine } = await openGrpcMessages({
    kernel: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, openMs: 30_000 } },
  })
  await engine.close()
  await create()
  const reply = await create()
  expect([reply.status, ((await reply.json()) as Envelope).error.type]).toEqual([503, 'overloaded_error'])
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(engine.calls).toEqual([])
  expect((await create({ model: 'nobody' })).status).toBe(404)
})

test('messages over gRPC: finish_reason content_filter becomes stop_reason refusal', async () => {
  const { create, engineAnswers } = await openShared()
  await engineAnswers('no', { finishReason: 'content_filter' })
  expect((await whole(await create())).stop_reason).toBe('refusal')
})

test('messages over gRPC: a request is retried on another engine before the first token, and not after it', async () => {
  const { create, engines, ids } = await openGrpcMessages({ engines: [{}, {}] })
  const tokens = await ids('Hi')
  engines[0].script = () => [{ status: 14, details: 'restarting' }]
  engines[1].answer([tokens])
  for (let nth = 0; nth < 4; nth++) expect((await create()).status).toBe(200)
  for (const engine of engines) {
    engine.calls.length = 0
    engine.script = () => [
      { chunk: { tokenIds: tokens, promptTokens: 3, completionTokens: 1 } },
      { waitFor: new Promise((resolve) => setTimeout(resolve, 30)) },
      { status: 14, details: 'gone' },
    ]
  }
  expect(readEvents(await (await create({ stream: true })).text()).at(-1)?.type).toBe('error')
  expect(engines[0].calls.length + engines[1].calls.length).toBe(1)
})

test('messages over gRPC: tools of the gateway and of the client in one turn', async () => {
  server = await startToolServer({ echo: ({ text }) => `you said ${text}` })
  const { create, engine, ids, asked } = await openGrpcMessages({
    plugins: { mcp: { clientServers: { allowsPrivate: true } } },
  })
  const echo = '<tool_call>\n{"name": "echo", "arguments": {"text": "hi"}}\n</tool_call>'
  const [first, last] = [await ids(echo), await ids('done')]
  const answers = (second: readonly number[]) => {
    let round = 0
    engine.script = ({ request }) =>
      engine.steps(
        (round++ % 2 === 0 ? first : second).map((id) => [id]),
        {},
        request,
      )
  }
  const servers = {
    mcp_servers: [{ type: 'url', name: 'tools', url: server.url }],
    tools: [{ type: 'mcp_toolset', mcp_server_name: 'tools' }, WEATHER],
  }
  answers(last)
  const pair = [
    { type: 'mcp_tool_use', name: 'echo', server_name: 'tools', input: { text: 'hi' } },
    { type: 'mcp_tool_result', is_error: false, content: [{ type: 'text', text: 'you said hi' }] },
  ]
  const message = await whole(await create(servers))
  expect(message).toMatchObject({
    content: [...pair, { type: 'text', text: 'done' }],
    stop_reason: 'end_turn',
  })
  expect(message.content[0].id).toBe(message.content[1].tool_use_id)
  expect(message.content[0].id).toMatch(/^mcptoolu_/)
  expect(message.usage).toMatchObject({ input_tokens: 14, output_tokens: first.length + last.length })
  const streamedMessage = await streamed(await create({ ...servers, stream: true }))
  expect(streamedMessage.content.map(({ type }) => type)).toEqual(['mcp_tool_use', 'mcp_tool_result', 'text'])
  expect([streamedMessage.stop_reason, streamedMessage.usage]).toMatchObject([
    'end_turn',
    { output_tokens: first.length + last.length },
  ])
  answers(await ids(CALL))
  const mixed = await whole(await create(servers))
  expect([mixed.stop_reason, mixed.content]).toMatchObject(['tool_use', [...pair, CALL_BLOCK]])
  answers(last)
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: message.content },
    { role: 'user', content: 'b' },
  ]
  expect((await create({ messages })).status).toBe(200)
  expect(asked().at(-1)?.tokenized.originalText).toContain('you said hi')
})
