/** Tools of the gateway over workers with the Messages format. */
import { afterEach, expect, test } from 'vitest'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { jsonAnswer, rawAnswer, type Script, streamAnswer } from '../support/scripted-worker.ts'
import { accumulate, CHAT, MESSAGES, NATIVE, openMessages, readEvents, VENDOR } from './messages-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function serve(): Promise<ToolServer> {
  const server = await startToolServer({ echo: ({ text }) => `you said ${text}` })
  ends.push(() => server.close())
  return server
}

type Worker = NonNullable<Parameters<typeof openMessages>[0]>['workers']
const LABELLED = { spec: { ...VENDOR.spec, labels: { mcp: 'gateway' } } }

async function open(workers: Worker, server: ToolServer) {
  const fleet = await openMessages({
    workers,
    plugins: { mcp: { clientServers: { allowsPrivate: true } } },
  })
  const defaults = {
    mcp_servers: [{ type: 'url', name: 'tools', url: server.url, authorization_token: 'secret-1' }],
    tools: [{ type: 'mcp_toolset', mcp_server_name: 'tools' }],
  }
  return {
    ...fleet,
    worker: fleet.workers[0],
    ask: (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
      fleet.create({ ...defaults, ...more }, headers),
    sent: () =>
      fleet.workers[0].requestsTo(MESSAGES).map((request) => request.json() as Record<string, unknown>),
  }
}

const message = (content: readonly object[], reason = 'end_turn') => ({
  id: 'msg_v',
  type: 'message',
  role: 'assistant',
  model: 'claude-real',
  content,
  stop_reason: reason,
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 4 },
})
const THOUGHT = { type: 'thinking', thinking: 'hm', signature: 'sig-1' }
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'echo', input: { text: 'hi' } }
const ROUNDS: readonly Script[] = [
  jsonAnswer(message([THOUGHT, CALL], 'tool_use')),
  jsonAnswer(message([{ type: 'text', text: 'done' }])),
]
const PAIR = [
  { type: 'mcp_tool_use', name: 'echo', server_name: 'tools', input: { text: 'hi' } },
  { type: 'mcp_tool_result', is_error: false, content: [{ type: 'text', text: 'you said hi' }] },
]

interface Message {
  content: Record<string, unknown>[]
  stop_reason: string
  usage: Record<string, number>
}

test.each([
  ['a header', [VENDOR], { 'x-weir-mcp': 'enabled' }],
  ['the header of the documentation', [VENDOR], { 'x-smg-mcp': 'enabled' }],
  ['a label of the worker', [LABELLED], {}],
])('messages over a vendor, by %s: the gateway runs the tools', async (_by, workers, headers) => {
  const { ask, sent, worker } = await open(workers as Worker, await serve())
  for (const script of [...ROUNDS, jsonAnswer(message([{ type: 'text', text: 'bye' }]))])
    worker.once(MESSAGES, script)
  const more = {
    system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
    thinking: { type: 'enabled', budget_tokens: 1024 },
    max_tokens: 4096,
    context_management: { edits: [] },
    tools: [
      { type: 'mcp_toolset', mcp_server_name: 'tools' },
      { name: 'mine', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } },
      { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
    ],
  }
  const reply = await ask(more, { ...headers, 'anthropic-beta': 'b-1' } as Record<string, string>)
  expect(reply.status, await reply.clone().text()).toBe(200)
  const whole = (await reply.json()) as Message
  expect(whole.content).toMatchObject([THOUGHT, ...PAIR, { type: 'text', text: 'done' }])
  expect(whole.content[1].id).toBe(whole.content[2].tool_use_id)
  expect(whole).toMatchObject({ stop_reason: 'end_turn', usage: { input_tokens: 20, output_tokens: 8 } })
  const [first, second] = sent()
  // Settings, blocks and tools are unchanged; the server's tools replace the toolset.
  expect(first).toMatchObject({
    model: 'test-model',
    system: more.system,
    thinking: more.thinking,
    context_management: more.context_management,
    tools: [more.tools[1], more.tools[2], { name: 'echo' }],
  })
  expect(first).not.toHaveProperty('mcp_servers')
  expect(second.messages).toMatchObject([
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: [THOUGHT, CALL] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'you said hi' }] },
  ])
  const requests = worker.requestsTo(MESSAGES)
  expect(requests.map((one) => one.header('anthropic-beta'))).toEqual(['b-1', 'b-1'])
  expect(requests.map((one) => one.header('x-api-key'))).toEqual(['vendor-key', 'vendor-key'])
  // When the client sends the response back, the vendor gets the calls and results in its own format.
  const messages = [
    { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
    { role: 'assistant', content: whole.content },
    { role: 'user', content: 'b' },
  ]
  expect((await ask({ messages }, headers as Record<string, string>)).status).toBe(200)
  const id = whole.content[1].id
  expect(sent()[2].messages).toEqual([
    messages[0],
    {
      role: 'assistant',
      content: [THOUGHT, { type: 'tool_use', id, name: 'echo', input: { text: 'hi' } }],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: id,
          is_error: false,
          content: [{ type: 'text', text: 'you said hi' }],
        },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
    messages[2],
  ])
  expect(JSON.stringify(sent())).not.toContain('secret-1')
})

test('messages over a vendor that runs tool servers itself: the request is relayed unchanged', async () => {
  const { ask, worker } = await open([VENDOR], await serve())
  const answer = JSON.stringify(message([{ type: 'mcp_tool_use', id: 'mcptoolu_v', name: 'echo', n: 1 }]))
  worker.script(MESSAGES, rawAnswer(answer, { headers: { 'content-type': 'application/json' } }))
  const reply = await ask({}, { 'anthropic-beta': 'mcp-client-2025-11-20' })
  expect(await reply.text()).toBe(answer)
  const request = worker.requestsTo(MESSAGES)[0]
  expect(request.json()).toMatchObject({ mcp_servers: [{ authorization_token: 'secret-1' }] })
  expect(request.header('anthropic-beta')).toBe('mcp-client-2025-11-20')
})

const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`

/** A streamed response: the start of each block, then its deltas. */
const round = (blocks: readonly (readonly [start: object, ...deltas: object[]])[], reason: string) =>
  streamAnswer(
    [
      event('message_start', { message: { ...message([]), stop_reason: null } }),
      ...blocks.flatMap(([start, ...deltas], index) => [
        event('content_block_start', { index, content_block: start }),
        ...deltas.map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', { delta: { stop_reason: reason }, usage: { output_tokens: 4 } }),
      event('message_stop', {}),
    ],
    { headers: { 'content-type': 'text/event-stream' } },
  )

test('messages over a vendor: the stream has one message_start, consecutive indices and the usage of all rounds', async () => {
  const { ask, worker } = await open([VENDOR], await serve())
  const thinking = [
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking: 'hm' },
    { type: 'signature_delta', signature: 'sig-1' },
  ] as const
  const input = { type: 'input_json_delta', partial_json: '{"text":"hi"}' }
  worker.once(MESSAGES, round([thinking, [{ ...CALL, input: {} }, input]], 'tool_use'))
  worker.once(
    MESSAGES,
    round(
      [
        [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'done' },
        ],
      ],
      'end_turn',
    ),
  )
  const events = readEvents(await (await ask({ stream: true }, { 'x-weir-mcp': 'enabled' })).text())
  const streamedMessage = accumulate(events)
  expect(streamedMessage.content.map(({ type }) => type)).toEqual([
    'thinking',
    'mcp_tool_use',
    'mcp_tool_result',
    'text',
  ])
  expect(streamedMessage.content[0]).toMatchObject({ thinking: 'hm', signature: 'sig-1' })
  expect(streamedMessage).toMatchObject({
    stop_reason: 'end_turn',
    usage: { input_tokens: 20, output_tokens: 8 },
  })
})

const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }
const FOUND = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', url: 'https://x.example', encrypted_content: 'enc' }],
}
const CITED = { type: 'text', text: 'As said', citations: [{ type: 'web_search_result_location', url: 'u' }] }
/** Every kind of block that a vendor sends in a round before a tool call. */
const ROUND = [
  THOUGHT,
  { type: 'thinking', thinking: 'again', signature: 'sig-2' },
  { type: 'redacted_thinking', data: 'sealed' },
  SEARCH,
  FOUND,
  CITED,
  { type: 'thinking', thinking: '', signature: 'sig-3' },
  CALL,
]
const deltasOf = (block: Record<string, unknown>): readonly [object, ...object[]] => {
  switch (block.type) {
    case 'thinking':
      return [
        { type: 'thinking', thinking: '', signature: '' },
        ...(block.thinking === '' ? [] : [{ type: 'thinking_delta', thinking: block.thinking }]),
        { type: 'signature_delta', signature: block.signature },
      ]
    case 'text':
      return [
        { type: 'text', text: '', citations: [] },
        { type: 'text_delta', text: block.text },
        ...(block.citations as object[]).map((citation) => ({ type: 'citations_delta', citation })),
      ]
    case 'tool_use':
    case 'server_tool_use':
      return [
        { ...block, input: {} },
        { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
      ]
    default:
      return [block]
  }
}

test.each([
  [false, 'whole'],
  [true, 'streamed'],
])(
  'messages over a vendor, stream %s: a round is sent back unchanged and reaches the client in order',
  async (stream) => {
    const { ask, sent, worker } = await open([VENDOR], await serve())
    const done = { type: 'text', text: 'done', citations: [] }
    if (stream) {
      worker.once(MESSAGES, round(ROUND.map(deltasOf), 'tool_use'))
      worker.once(
        MESSAGES,
        round([deltasOf({ type: 'redacted_thinking', data: 'last' }), deltasOf(done)], 'end_turn'),
      )
    } else {
      worker.once(MESSAGES, jsonAnswer(message(ROUND, 'tool_use')))
      worker.once(MESSAGES, jsonAnswer(message([{ type: 'redacted_thinking', data: 'last' }, done])))
    }
    const more = { stream, thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4096 }
    const reply = await ask(more, { 'x-weir-mcp': 'enabled' })
    expect(reply.status, await reply.clone().text()).toBe(200)
    const content = stream
      ? accumulate(readEvents(await reply.text())).content
      : ((await reply.json()) as Message).content
    const [, second] = sent()
    expect(second.messages).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: ROUND },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'you said hi' }],
      },
    ])
    const { citations: _, ...said } = done
    expect(content).toMatchObject([
      ...ROUND.slice(0, -1),
      ...PAIR,
      { type: 'redacted_thinking', data: 'last' },
      said,
    ])
    // The client's copy of the turn is sent back with the same blocks.
    worker.script(MESSAGES, jsonAnswer(message([{ type: 'text', text: 'bye' }])))
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content },
      { role: 'user', content: 'b' },
    ]
    expect((await ask({ messages }, { 'x-weir-mcp': 'enabled' })).status).toBe(200)
    const again = sent()[2].messages as { content: Record<string, unknown>[] }[]
    expect(again[1].content.slice(0, -1)).toEqual(ROUND.slice(0, -1))
  },
)

test('messages over an engine with the Messages route: the gateway runs the tools', async () => {
  const { ask, create, worker } = await open([NATIVE], await serve())
  // After its first success the route is relayed without parsing bodies, unless they name tool servers.
  worker.once(MESSAGES, jsonAnswer(message([{ type: 'text', text: 'hello' }])))
  expect((await create()).status).toBe(200)
  const choice = (said: object, reason: string) =>
    jsonAnswer({ id: 'c', model: 'm', choices: [{ index: 0, message: said, finish_reason: reason }] })
  const call = { id: 'c1', type: 'function', function: { name: 'echo', arguments: '{"text":"hi"}' } }
  worker.once(CHAT, choice({ content: null, tool_calls: [call] }, 'tool_calls'))
  worker.once(CHAT, choice({ content: 'done' }, 'stop'))
  const { content, stop_reason: reason } = (await (await ask()).json()) as Message
  expect(content).toMatchObject([...PAIR, { type: 'text', text: 'done' }])
  expect(reason).toBe('end_turn')
})

test('a header for tools is a 400 if the mcp plugin is off or the request cannot be translated', async () => {
  const { create } = await openMessages({ workers: [VENDOR], plugins: {} })
  const headers = { 'x-weir-mcp': 'enabled' }
  const servers = [{ type: 'url', name: 't', url: 'http://127.0.0.1:1' }]
  const tools = [{ type: 'mcp_toolset', mcp_server_name: 't' }]
  const off = await create({ mcp_servers: servers, tools }, headers)
  expect([off.status, await off.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(/enable plugin mcp/) } },
  ])
  const { ask } = await open([VENDOR], await serve())
  const messages = [{ role: 'user', content: [{ type: 'hologram' }] }]
  const odd = await ask({ messages }, headers)
  expect([odd.status, await odd.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(/messages\.0\.content\.0/) } },
  ])
})

test('requests that the tool loop rejects are rejected over Messages engines too, and no engine gets the token', async () => {
  const { ask, worker } = await open([NATIVE], await serve())
  const server = (url: string) => ({ type: 'url', name: 'tools', url, authorization_token: 'secret-1' })
  const toolset = { type: 'mcp_toolset', mcp_server_name: 'tools' }
  const refused = [
    { mcp_servers: [server('ftp://files.example/mcp')] },
    { tools: [toolset, toolset] },
    { messages: [{ role: 'user', content: [{ type: 'hologram' }] }] },
    { max_tokens: 0 },
  ]
  for (const more of refused) {
    const reply = await ask(more)
    expect([reply.status, (await reply.json()) as object]).toMatchObject([
      expect.toSatisfy((status) => status === 400 || status === 403),
      { type: 'error' },
    ])
  }
  expect(worker.requests).toEqual([])
})

const BASH = { type: 'bash_20250124', name: 'bash' }
const LATER = { name: 'later', input_schema: { type: 'object' }, defer_loading: true }
const TOOLSET = { type: 'mcp_toolset', mcp_server_name: 'tools' }

test.each([
  ['of the vendor’s type', BASH],
  ['that is loaded later', LATER],
])(
  "messages over a vendor: a call of the client's own tool %s is returned to the client",
  async (_kind, tool) => {
    const { ask, sent, worker } = await open([VENDOR], await serve())
    const mine = { type: 'tool_use', id: 'toolu_2', name: tool.name, input: { command: 'ls' } }
    worker.once(MESSAGES, jsonAnswer(message([CALL, mine], 'tool_use')))
    const reply = (await (
      await ask({ tools: [TOOLSET, tool] }, { 'x-weir-mcp': 'enabled' })
    ).json()) as Message
    expect(reply.stop_reason).toBe('tool_use')
    expect(reply.content).toMatchObject([...PAIR, mine])
    expect(sent()).toHaveLength(1)
  },
)

test('messages over a vendor: tool_choice may name a tool of the client or of the vendor, in the first round', async () => {
  const { ask, sent, worker } = await open([VENDOR], await serve())
  const search = { type: 'web_search_20250305', name: 'web_search' }
  for (const tool of [BASH, LATER, search]) {
    worker.requests.length = 0
    for (const script of ROUNDS) worker.once(MESSAGES, script)
    const choice = { type: 'tool', name: tool.name, disable_parallel_tool_use: true }
    const reply = await ask({ tools: [TOOLSET, tool], tool_choice: choice }, { 'x-weir-mcp': 'enabled' })
    expect(reply.status, await reply.clone().text()).toBe(200)
    expect(sent().map((body) => body.tool_choice)).toEqual([
      choice,
      { type: 'auto', disable_parallel_tool_use: true },
    ])
  }
})

test('messages over a vendor: a server tool with the name of a client tool is renamed', async () => {
  const server = await startToolServer({ bash: () => 'ran here' })
  ends.push(() => server.close())
  const { ask, sent, worker } = await open([VENDOR], server)
  worker.once(
    MESSAGES,
    jsonAnswer(
      message(
        [
          { ...CALL, name: 'mcp_tools_bash' },
          { ...CALL, id: 'toolu_2', name: 'bash' },
        ],
        'tool_use',
      ),
    ),
  )
  const reply = (await (await ask({ tools: [TOOLSET, BASH] }, { 'x-weir-mcp': 'enabled' })).json()) as Message
  expect(sent()[0].tools).toMatchObject([BASH, { name: 'mcp_tools_bash' }])
  expect(reply.content).toMatchObject([
    { type: 'mcp_tool_use', name: 'bash' },
    { type: 'mcp_tool_result', content: [{ text: 'ran here' }] },
    { type: 'tool_use', name: 'bash' },
  ])
})

test('messages over a vendor: a mixed turn that is sent back stays one turn that begins with its thinking', async () => {
  const { ask, sent, worker } = await open([VENDOR], await serve())
  const mine = { type: 'tool_use', id: 'toolu_2', name: 'mine', input: {} }
  worker.once(MESSAGES, jsonAnswer(message([THOUGHT, CALL, mine], 'tool_use')))
  worker.script(MESSAGES, jsonAnswer(message([{ type: 'text', text: 'done' }])))
  const more = {
    thinking: { type: 'enabled', budget_tokens: 1024 },
    max_tokens: 4096,
    tools: [TOOLSET, { name: 'mine', input_schema: { type: 'object' } }],
  }
  const headers = { 'x-weir-mcp': 'enabled' }
  const { content } = (await (await ask(more, headers)).json()) as Message
  expect(content).toMatchObject([THOUGHT, ...PAIR, mine])
  const echoId = content[1].id
  const turn = {
    role: 'assistant',
    content: [THOUGHT, { type: 'tool_use', id: echoId, name: 'echo', input: { text: 'hi' } }, mine],
  }
  const echoed = {
    type: 'tool_result',
    tool_use_id: echoId,
    content: [{ type: 'text', text: 'you said hi' }],
  }
  const hello = { role: 'user', content: 'Hello' }
  const result = { type: 'tool_result', tool_use_id: 'toolu_2', content: 'x' }
  const said = { role: 'assistant', content }
  await ask({ ...more, messages: [hello, said, { role: 'user', content: [result] }] }, headers)
  expect(sent()[1].messages).toMatchObject([hello, turn, { role: 'user', content: [echoed, result] }])
  await ask({ ...more, messages: [hello, said, { role: 'user', content: 'go on' }] }, headers)
  expect(sent()[2].messages).toMatchObject([
    hello,
    turn,
    { role: 'user', content: [echoed, { type: 'text', text: 'go on' }] },
  ])
  // Without a following user turn the results become a turn of their own.
  const later = { role: 'assistant', content: 'later' }
  await ask({ ...more, messages: [hello, said, later, hello, said] }, headers)
  const results = { role: 'user', content: [echoed] }
  expect(sent()[3].messages).toMatchObject([hello, turn, results, later, hello, turn, results])
})

test.each([
  [false, 'whole'],
  [true, 'streamed'],
])(
  'messages over a vendor, stream %s: pause_turn of the vendor is returned as pause_turn',
  async (stream) => {
    const { ask, worker } = await open([VENDOR], await serve())
    const said = { type: 'text', text: 'so far', citations: [] }
    worker.once(
      MESSAGES,
      stream
        ? round([deltasOf(SEARCH), deltasOf(said)], 'pause_turn')
        : jsonAnswer(message([SEARCH, said], 'pause_turn')),
    )
    const reply = await ask({ stream }, { 'x-weir-mcp': 'enabled' })
    const received = stream ? accumulate(readEvents(await reply.text())) : ((await reply.json()) as Message)
    expect(received.content).toMatchObject([SEARCH, { type: 'text', text: 'so far' }])
    expect(received.stop_reason).toBe('pause_turn')
  },
)

test('members of the message and a stop reason that only the format has reach the client', async () => {
  const server = await serve()
  const edits = { applied_edits: [{ type: 'clear_tool_uses_20250919', cleared_tool_uses: 8 }] }
  const end = { ...message([{ type: 'text', text: 'done' }], 'brand_new'), context_management: edits }
  const fleet = await open([LABELLED], server)
  fleet.worker.script(MESSAGES, jsonAnswer(end))
  expect(await (await fleet.ask()).json()).toMatchObject({
    context_management: edits,
    stop_reason: 'brand_new',
  })
  const last = readEvents(await (await fleet.ask({ stream: true })).text()).find(
    ({ type }) => type === 'message_delta',
  )
  expect(last).toMatchObject({ context_management: edits, delta: { stop_reason: 'brand_new' } })
})
