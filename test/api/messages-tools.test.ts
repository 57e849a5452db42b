/** Tools of the gateway in messages: real tool servers, a scripted chat worker. */
import { afterEach, expect, test, vi } from 'vitest'
import { plugin } from '../support/hooked-gateway.ts'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { accumulate, CHAT, openMessages, readEvents } from './messages-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function serve(): Promise<ToolServer> {
  const server = await startToolServer({
    echo: ({ text }) => `you said ${text}`,
    fail: () => {
      throw new Error('no such luck')
    },
  })
  ends.push(() => server.close())
  return server
}

const USAGE = { prompt_tokens: 10, completion_tokens: 4 }
const call = (name: string, id = 'c1', args = '{"text":"hi"}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const whole = (message: object, reason = 'stop') =>
  jsonAnswer({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: reason }], usage: USAGE })
const chunk = (delta: object, reason: string | null = null) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const streamed = (deltas: readonly object[], reason: string) =>
  sseAnswer([
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, reason),
    JSON.stringify({ choices: [], usage: USAGE }),
    '[DONE]',
  ])
const calls = (...list: readonly object[]) => ({ tool_calls: list.map((one, index) => ({ index, ...one })) })

async function open(scripts: readonly Script[], server: ToolServer, section: Record<string, unknown> = {}) {
  const fleet = await openMessages({
    plugins: { mcp: { clientServers: { allowsPrivate: true }, ...section } },
  })
  for (const script of scripts) fleet.workers[0].once(CHAT, script)
  const defaults = {
    mcp_servers: [{ type: 'url', name: 'tools', url: server.url, authorization_token: 'secret-1' }],
    tools: [{ type: 'mcp_toolset', mcp_server_name: 'tools' }],
  }
  return {
    ...fleet,
    ask: (more: Record<string, unknown> = {}) => fleet.create({ ...defaults, ...more }),
    sent: () => fleet.workers[0].requestsTo(CHAT).map((request) => request.json() as Record<string, unknown>),
  }
}

interface Message {
  content: Record<string, unknown>[]
  stop_reason: string
  usage: Record<string, number>
}

const PAIR = [
  { type: 'mcp_tool_use', id: 'mcptoolu_c1', name: 'echo', server_name: 'tools', input: { text: 'hi' } },
  {
    type: 'mcp_tool_result',
    tool_use_id: 'mcptoolu_c1',
    is_error: false,
    content: [{ type: 'text', text: 'you said hi' }],
  },
  { type: 'text', text: 'done' },
]

test('a call of the gateway and its result are part of the message, which can be sent back', async () => {
  const scripts = [
    whole({ content: null, tool_calls: [call('echo')] }, 'tool_calls'),
    whole({ content: 'done' }),
  ]
  const { ask, sent } = await open([...scripts, whole({ content: 'bye' })], await serve())
  const reply = await ask()
  expect(reply.status, await reply.clone().text()).toBe(200)
  const message = (await reply.json()) as Message
  expect(message).toMatchObject({ content: PAIR, stop_reason: 'end_turn' })
  expect(message.usage).toMatchObject({ input_tokens: 20, output_tokens: 8 })
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: message.content },
    { role: 'user', content: 'and now?' },
  ]
  expect((await ask({ messages })).status).toBe(200)
  expect((sent()[2].messages as { role: string }[]).map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
    'user',
  ])
  expect(JSON.stringify(sent())).not.toContain('secret-1')
})

test('streamed: one message_start, consecutive indices, the usage of all rounds', async () => {
  const scripts = [
    streamed(
      [
        calls(call('echo', 'c1', '')),
        calls({ function: { arguments: '{"text":' } }),
        calls({ function: { arguments: '"hi"}' } }),
      ],
      'tool_calls',
    ),
    streamed([{ content: 'do' }, { content: 'ne' }], 'stop'),
  ]
  const { ask } = await open(scripts, await serve())
  const events = readEvents(await (await ask({ stream: true })).text())
  const start = events.find(({ type }) => type === 'content_block_start')
  expect(start).toMatchObject({ index: 0, content_block: { type: 'mcp_tool_use', input: {} } })
  const inputs = events.flatMap(
    (event) => (event.delta as { partial_json?: string } | undefined)?.partial_json ?? [],
  )
  expect(inputs.join('')).toBe('{"text":"hi"}')
  const message = accumulate(events)
  expect(message.content.map(({ type }) => type)).toEqual(['mcp_tool_use', 'mcp_tool_result', 'text'])
  expect(message.content[2].text).toBe('done')
  expect(message).toMatchObject({ stop_reason: 'end_turn', usage: { input_tokens: 20, output_tokens: 8 } })
})

test('a failed tool is reported and the turn continues; an unreachable server is a 502', async () => {
  const server = await serve()
  const scripts = [
    whole({ content: null, tool_calls: [call('fail')] }, 'tool_calls'),
    whole({ content: 'done' }),
  ]
  const { ask } = await open(scripts, server)
  const { content } = (await (await ask()).json()) as Message
  expect(content[1]).toMatchObject({ type: 'mcp_tool_result', is_error: true })
  expect(content[2]).toEqual({ type: 'text', text: 'done' })
  await server.close()
  ends.length = 0
  const gone = await open([], server)
  const reply = await gone.ask()
  expect([reply.status, await reply.json()]).toMatchObject([
    502,
    { type: 'error', error: { type: 'api_error' } },
  ])
})

test('the error names the unreachable server of two', async () => {
  const [gone, server] = [await serve(), await serve()]
  await gone.close()
  ends.shift()
  const { ask } = await open([], server)
  const reply = await ask({
    mcp_servers: [
      { type: 'url', name: 'tools', url: server.url },
      { type: 'url', name: 'lost', url: gone.url },
    ],
    tools: ['tools', 'lost'].map((name) => ({ type: 'mcp_toolset', mcp_server_name: name })),
  })
  const { error } = (await reply.json()) as { error: { type: string; message: string } }
  expect([reply.status, error.type]).toEqual([502, 'api_error'])
  expect(error.message).toContain('lost')
  expect(error.message).not.toContain(gone.url)
})

test('a turn that reaches the limit of rounds has stop_reason pause_turn', async () => {
  const again = whole({ content: null, tool_calls: [call('echo')] }, 'tool_calls')
  const { ask, workers } = await open([], await serve())
  workers[0].script(CHAT, again)
  const message = (await (await ask()).json()) as Message
  expect(message.stop_reason).toBe('pause_turn')
  expect(message.content.length).toBeGreaterThan(2)
})

test('a call of a client tool ends the turn, after the calls and results of the gateway', async () => {
  const scripts = [
    whole({ content: null, tool_calls: [call('echo'), call('mine', 'c2', '{"a":1}')] }, 'tool_calls'),
  ]
  const { ask } = await open(scripts, await serve())
  const tools = [
    { type: 'mcp_toolset', mcp_server_name: 'tools' },
    { name: 'mine', input_schema: { type: 'object' } },
  ]
  const message = (await (await ask({ tools })).json()) as Message
  expect(message.stop_reason).toBe('tool_use')
  expect(message.content).toEqual(
    expect.arrayContaining([
      ...PAIR.slice(0, 2),
      { type: 'tool_use', id: 'toolu_c2', name: 'mine', input: { a: 1 } },
    ]),
  )
})

test('configs of single tools override the default; tools with defer_loading are not offered', async () => {
  const offered = async (toolset: object) => {
    const { ask, sent } = await open([whole({ content: 'done' })], await serve())
    await ask({ tools: [{ type: 'mcp_toolset', mcp_server_name: 'tools', ...toolset }] })
    return ((sent()[0].tools ?? []) as { function: { name: string } }[])
      .map((tool) => tool.function.name)
      .sort()
  }
  expect(await offered({})).toEqual(['echo', 'fail'])
  expect(await offered({ configs: { fail: { enabled: false } } })).toEqual(['echo'])
  expect(await offered({ default_config: { enabled: false }, configs: { fail: { enabled: true } } })).toEqual(
    ['fail'],
  )
  expect(await offered({ default_config: { enabled: false } })).toEqual([])
  expect(await offered({ configs: { echo: { defer_loading: true } } })).toEqual(['fail'])
})

test('a turn that fails in a hook releases its tool servers', async () => {
  const [first, second] = [await serve(), await serve()]
  let isBad = false
  const bad = plugin('bad-hook', (host) => {
    const hook = (_ctx: unknown, events: Buffer) => {
      if (isBad) throw new Error('careless')
      return events
    }
    host.hook('onEvents', hook, { scope: 'all' })
  })
  const fleet = await openMessages({
    own: [bad],
    plugins: { mcp: { clientServers: { allowsPrivate: true }, limits: { maxConnections: 1 } } },
  })
  const [worker] = fleet.workers
  const ask = (server: ToolServer) =>
    fleet.create({
      stream: true,
      mcp_servers: [{ type: 'url', name: 'tools', url: server.url }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'tools' }],
    })
  isBad = true
  worker.once(CHAT, sseAnswer([chunk({ content: 'Hi' }), { hang: true }]))
  await (await ask(first)).text()
  isBad = false
  // The server allows one connection, which is released asynchronously.
  await vi.waitFor(
    async () => {
      worker.script(CHAT, streamed([{ content: 'done' }], 'stop'))
      expect(await (await ask(second)).text()).toContain('done')
    },
    { timeout: 20_000, interval: 100 },
  )
})

test('tool_choice may name a tool of any server', async () => {
  const first = await startToolServer({ other: () => 'x' })
  ends.push(() => first.close())
  const second = await serve()
  const { ask, sent } = await open([whole({ content: 'done' })], second)
  const servers = {
    mcp_servers: [
      { type: 'url', name: 'first', url: first.url },
      { type: 'url', name: 'second', url: second.url },
    ],
    tools: ['first', 'second'].map((name) => ({ type: 'mcp_toolset', mcp_server_name: name })),
  }
  const reply = await ask({ ...servers, tool_choice: { type: 'tool', name: 'echo' } })
  expect(reply.status, await reply.clone().text()).toBe(200)
  expect(sent()[0].tool_choice).toEqual({ type: 'function', function: { name: 'echo' } })
  const missing = await ask({ ...servers, tool_choice: { type: 'tool', name: 'nothing' } })
  expect([missing.status, await missing.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(/'nothing' of any server/) } },
  ])
})

test('a tool that requires approval is denied, and the turn continues', async () => {
  const scripts = [
    whole({ content: null, tool_calls: [call('echo')] }, 'tool_calls'),
    whole({ content: 'done' }),
  ]
  const server = await serve()
  const { ask, sent } = await open(scripts, server, { defaultApproval: 'always' })
  const message = (await (await ask()).json()) as Message
  expect(message).toMatchObject({ content: [{ type: 'text', text: 'done' }], stop_reason: 'end_turn' })
  const result = (sent()[1].messages as { role: string; content: string }[]).at(-1)
  expect(result).toMatchObject({ role: 'tool', content: expect.stringContaining('cannot give') })
  expect(server.ran).toEqual([])
})
