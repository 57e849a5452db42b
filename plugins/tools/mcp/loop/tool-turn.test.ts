/** The loop over a scripted model and real tool servers: order, several servers, failures of tools, limits. */
import { afterEach, beforeAll, expect, test } from 'vitest'
import {
  addedMessages,
  endOf,
  mcpTool,
  offeredNames,
  only,
  TestLoop,
  withFunctions,
} from '../../../../test/support/mcp/run-turn.ts'
import { brokenWorker, scriptedModel } from '../../../../test/support/mcp/scripted-model.ts'
import { startToolServer, type ToolServer } from '../../../../test/support/mcp/tool-server.ts'

const ends: (() => Promise<void>)[] = []
let docs: ToolServer
let web: ToolServer

beforeAll(async () => {
  docs = await startToolServer({
    search: ({ q }) => `docs: ${q}`,
    read: { description: 'Reads.', annotations: { readOnlyHint: true }, run: () => 'page' },
    breaks: () => ({ content: [{ type: 'text', text: 'disk full' }], isError: true }),
    throws: () => {
      throw new Error('boom')
    },
    slow: () => new Promise(() => {}),
  })
  web = await startToolServer({ search: ({ q }) => `web: ${q}`, fetch: () => 'fetched' })
  return async () => {
    await docs.close()
    await web.close()
  }
})

afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

function openLoop(section: Record<string, unknown> = {}): TestLoop {
  const loop = new TestLoop(section)
  ends.push(() => loop.pool.close())
  return loop
}

test('list, call, message, in this order', async () => {
  const model = scriptedModel({ calls: [['search', { q: 'x' }]] }, { text: 'done' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(events.map((event) => ('index' in event ? `${event.index} ${event.type}` : event.type))).toEqual([
    'list_started',
    'list_done',
    'started',
    '0 tool_call',
    '0 tool_arguments',
    '0 tool_arguments',
    '0 tool_call_done',
    'generation_done',
    '0 call_running',
    '0 call_done',
    'text',
    'text',
    'generation_done',
    'choice_done',
    'finished',
  ])
  const [done] = only(events, 'call_done')
  expect(only(events, 'tool_call')[0].tool).toEqual({ kind: 'mcp', label: 'docs', name: 'search' })
  expect(done).toMatchObject({
    arguments: '{"q":"x"}',
    result: { status: 'completed', output: 'docs: x', error: null },
  })
  const [{ tools }] = only(events, 'list_done')
  expect(tools.find(({ name }) => name === 'read')).toEqual({
    name: 'read',
    description: 'Reads.',
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true },
  })
})

test('allowed_tools decides which tools are listed and offered, and so does a read-only filter', async () => {
  const model = scriptedModel({ text: 'done' })
  const tools = [
    mcpTool('docs', docs.url, { allowedTools: { toolNames: ['search', 'unknown'] } }),
    mcpTool('again', docs.url, { allowedTools: { isReadOnly: true } }),
    mcpTool('none', web.url, { allowedTools: { toolNames: [] } }),
  ]
  const events = await openLoop().run(model, { tools })
  const listed = only(events, 'list_done').map((event) => event.tools.map(({ name }) => name))
  expect(listed).toEqual([['search'], ['read'], []])
  expect(offeredNames(model)).toEqual([['search', 'read']])
})

test('a function keeps its name, equally named server tools are renamed, and calls have the original name', async () => {
  const model = scriptedModel({ calls: [['mcp_web_search', { q: 'x' }]] }, { text: 'done' })
  const events = await openLoop().run(model, {
    tools: [mcpTool('docs', docs.url, { allowedTools: { toolNames: ['search'] } }), mcpTool('web', web.url)],
    request: withFunctions('search'),
  })
  expect(offeredNames(model)[0]).toEqual(['search', 'mcp_docs_search', 'mcp_web_search', 'fetch'])
  expect(only(events, 'tool_call')[0].tool).toMatchObject({ label: 'web', name: 'search' })
  expect(only(events, 'call_done')[0].result.output).toBe('web: x')
})

test('a failing tool is a failed call, the model receives the error, and the turn continues', async () => {
  const model = scriptedModel({ calls: [['breaks', {}]] }, { text: 'done' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(only(events, 'call_done')[0].result).toMatchObject({
    status: 'failed',
    output: '',
    error: { type: 'mcp_tool_execution_error', message: 'disk full' },
  })
  expect(addedMessages(model, 1)[1]).toMatchObject({ role: 'tool', content: 'disk full', is_error: true })
  expect(endOf(events)).toMatchObject({ reason: 'stop' })
})

test('a protocol error is reported with its code', async () => {
  const model = scriptedModel({ calls: [['throws', {}]] }, { text: 'done' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  const { error } = only(events, 'call_done')[0].result
  expect(error).toEqual({ type: 'mcp_protocol_error', code: -32603, message: 'boom' })
})

test('arguments that are not a JSON object are not sent to a server', async () => {
  const model = scriptedModel(
    {
      calls: [
        ['search', '{"q":'],
        ['search', '[1]'],
      ],
    },
    { text: 'done' },
  )
  const ranBefore = docs.ran.length
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(docs.ran.length).toBe(ranBefore)
  expect(only(events, 'call_done').map(({ result }) => result.status)).toEqual(['failed', 'failed'])
  expect(only(events, 'call_done').map(({ result }) => result.modelText)).toEqual([
    'The arguments are not valid JSON (Unexpected end of JSON input).',
    'The arguments must be a JSON object.',
  ])
  expect(only(events, 'call_done')[0].arguments).toBe('{"q":')
  expect(endOf(events)).toMatchObject({ reason: 'stop' })
})

test('arguments that do not match the schema fail with the name of the field, and the server runs nothing', async () => {
  const properties = { to: { type: 'string' }, at: { $ref: '#/$defs/place' } }
  const $defs = { place: { type: 'object', properties: { floor: { type: 'integer' } }, required: ['floor'] } }
  const inputSchema = { type: 'object', properties, required: ['to'], anyOf: [{ required: ['at'] }], $defs }
  const server = await startToolServer({ send: { inputSchema, run: () => 'sent' } })
  ends.push(() => server.close())
  const inputs = [
    { at: { floor: 1 } },
    { to: 1, at: { floor: 1 } },
    { to: 'a', at: { floor: 'x' } },
    { to: 'a' },
    { to: 'a', at: { floor: 2 } },
  ]
  const model = scriptedModel(...inputs.map((input) => ({ calls: [['send', input]] as const })), {
    text: 'done',
  })
  const events = await openLoop().run(model, { tools: [mcpTool('post', server.url)] })
  const results = only(events, 'call_done').map(({ result }) => result)
  expect(results.map(({ modelText }) => modelText)).toEqual([
    "The arguments do not match the schema of the tool: 'to' is required.",
    "The arguments do not match the schema of the tool: 'to' must be a string.",
    "The arguments do not match the schema of the tool: 'at.floor' must be an integer.",
    "The arguments do not match the schema of the tool: 'at' is required.",
    'sent',
  ])
  expect(results.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed', 'failed', 'completed'])
  expect(server.ran).toEqual(['send'])
  // The model gets no alternatives at the top, which vendors reject.
  const [{ function: offered }] = model.requests[0].tools
  expect(offered.parameters).toEqual({ type: 'object', properties, required: ['to', 'at'], $defs })
  expect(offered.description).toContain('{"anyOf":[{"required":["at"]}]}')
})

test('a tool whose schema is beyond the bounds is not offered, and the log has the reason', async () => {
  const inputSchema = { type: 'object', properties: { a: { $ref: 'https://a.example/s.json' } } }
  const server = await startToolServer({ bad: { inputSchema, run: () => '' }, good: () => 'ran' })
  ends.push(() => server.close())
  const model = scriptedModel({ text: 'done' })
  const loop = openLoop()
  await loop.run(model, { tools: [mcpTool('s', server.url)] })
  expect(offeredNames(model)).toEqual([['good']])
  const line = loop.log.lines.find((one) => one.includes('tools not offered'))
  expect(JSON.parse(line ?? '{}').unusable).toEqual([
    { name: 'bad', reason: expect.stringContaining('"https://a.example/s.json"') },
  ])
})

test('an unreachable server ends the turn before any generation', async () => {
  const gone = await startToolServer({})
  await gone.close()
  const model = scriptedModel({ text: 'never' })
  const events = await openLoop().run(model, {
    tools: [mcpTool('docs', docs.url), mcpTool('gone', gone.url)],
  })
  expect(events.map(({ type }) => type)).toEqual([
    'list_started',
    'list_done',
    'list_started',
    'list_failed',
    'failed',
  ])
  const last = events.at(-1)
  expect(last).toMatchObject({ error: { code: 'connect_mcp_server_failed', status: 424, param: 'tools' } })
  expect(JSON.stringify(events)).not.toContain('127.0.0.1')
  expect(model.requests).toEqual([])
})

test('a tool that exceeds its timeout is a failed call, and the server is notified', async () => {
  const cancelled = Promise.withResolvers<void>()
  const server = await startToolServer({
    slow: (_, { signal }) => new Promise(() => signal.addEventListener('abort', () => cancelled.resolve())),
  })
  ends.push(() => server.close())
  const model = scriptedModel({ calls: [['slow', {}]] }, { text: 'done' })
  const events = await openLoop({ limits: { callMs: 100 } }).run(model, { tools: [mcpTool('s', server.url)] })
  const { error } = only(events, 'call_done')[0].result
  expect(error).toEqual({ type: 'http_error', code: 0, message: 'no response in time' })
  expect(endOf(events)).toMatchObject({ reason: 'stop' })
  await cancelled.promise
})

test('max_tool_calls limits the calls, the model receives the reason, and the turn ends with a message', async () => {
  const three = [1, 2, 3].map((n) => ['search', { q: n }] as const)
  const model = scriptedModel({ calls: three }, { text: 'done' })
  const limits = { maxToolCalls: 1, atLimit: 'answer' } as const
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)], limits })
  expect(only(events, 'call_done')).toHaveLength(1)
  expect(only(events, 'tool_call')).toHaveLength(1)
  expect(
    addedMessages(model, 1)
      .map(({ content }) => content)
      .slice(1),
  ).toEqual(['docs: 1', expect.stringContaining('limit'), expect.stringContaining('limit')])
  expect(model.requests[1].tools).toEqual([])
  expect(endOf(events)).toMatchObject({ reason: 'stop', generations: 2 })
})

test('a model that never stops calling gets a last iteration without tools; if it calls again, the turn fails', async () => {
  const call = { calls: [['search', { q: 1 }]] } as const
  const settings = { limits: { maxIterations: 3 } }
  const tame = scriptedModel(call, call, call, { text: 'enough' })
  const events = await openLoop(settings).run(tame, { tools: [mcpTool('docs', docs.url)] })
  expect(endOf(events)).toMatchObject({ reason: 'stop', generations: 4 })
  expect(tame.requests[3].tools).toEqual([])
  const wild = scriptedModel(call)
  const failed = await openLoop(settings).run(wild, { tools: [mcpTool('docs', docs.url)] })
  expect(failed.at(-1)).toMatchObject({ type: 'failed', error: { code: 'tool_iterations_exceeded' } })
  expect(wild.requests).toHaveLength(4)
})

test('at the limit a turn can end immediately', async () => {
  const model = scriptedModel({ calls: [['search', { q: 1 }]] })
  const limits = { maxToolCalls: null, maxIterations: 2, atLimit: 'stop' } as const
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)], limits })
  expect(endOf(events)).toMatchObject({ reason: 'stop', isAtToolLimit: true, generations: 2 })
})

test("if the client's own function is called too, gateway calls run and the turn is passed to the client", async () => {
  const model = scriptedModel({
    calls: [
      ['search', { q: 'x' }],
      ['weather', { city: 'B' }],
    ],
  })
  const events = await openLoop().run(model, {
    tools: [mcpTool('docs', docs.url)],
    request: withFunctions('weather'),
  })
  expect(only(events, 'call_done')[0].result.output).toBe('docs: x')
  expect(only(events, 'tool_call')[1]).toEqual({
    type: 'tool_call',
    choice: 0,
    index: 1,
    id: 'call_1_1',
    name: 'weather',
  })
  expect(endOf(events)).toMatchObject({ reason: 'tool_calls', generations: 1 })
})

test('parallel calls run concurrently and are reported in the order of the model', async () => {
  const all = Promise.withResolvers<void>()
  let running = 0
  const server = await startToolServer({
    wait: async ({ n }) => {
      if (++running === 3) all.resolve()
      await all.promise
      return `${n}`
    },
  })
  ends.push(() => server.close())
  const calls = [1, 2, 3].map((n) => ['wait', { n }] as const)
  const model = scriptedModel({ calls }, { text: 'done' })
  const events = await openLoop().run(model, { tools: [mcpTool('s', server.url)] })
  expect(only(events, 'call_done').map(({ result }) => result.output)).toEqual(['1', '2', '3'])
  expect(
    addedMessages(model, 1)
      .slice(1)
      .map((message) => message.content),
  ).toEqual(['1', '2', '3'])
})

test('without parallel_tool_calls they run one after the other', async () => {
  let running = 0
  let most = 0
  const server = await startToolServer({
    wait: async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      return 'x'
    },
  })
  ends.push(() => server.close())
  const model = scriptedModel({ calls: [1, 2, 3].map((n) => ['wait', { n }] as const) }, { text: 'done' })
  const request = { ...withFunctions(), parallelToolCalls: false }
  await openLoop().run(model, { tools: [mcpTool('s', server.url)], request })
  expect([most, server.ran.length]).toEqual([1, 3])
})

test('a list that the client has is reported again only if it has changed', async () => {
  const loop = openLoop()
  const a = mcpTool('docs', docs.url)
  const first = await loop.run(scriptedModel({ text: 'x' }), { tools: [a] })
  const [{ fingerprint }] = only(first, 'list_done')
  const listed = [{ label: 'docs', fingerprint }]
  const model = scriptedModel({ calls: [['search', { q: 1 }]] }, { text: 'x' })
  const second = await loop.run(model, { tools: [a], listed })
  expect(only(second, 'list_started', 'list_done')).toEqual([])
  expect(only(second, 'call_done')[0].index).toBe(0)
  const third = await loop.run(scriptedModel({ text: 'x' }), { tools: [a, mcpTool('web', web.url)], listed })
  expect(only(third, 'list_done').map(({ label }) => label)).toEqual(['web'])
  const narrow = mcpTool('docs', docs.url, { allowedTools: { toolNames: ['read'] } })
  const fourth = await loop.run(scriptedModel({ text: 'x' }), { tools: [narrow], listed })
  expect(only(fourth, 'list_done')).toHaveLength(1)
  expect(docs.lists).toBeGreaterThan(0)
})

test('the next turn does not request the list again either', async () => {
  const server = await startToolServer({ a: () => 'a', b: () => 'b', c: () => 'c' }, { pageSize: 2 })
  ends.push(() => server.close())
  const loop = openLoop()
  for (let turn = 0; turn < 3; turn++) {
    const events = await loop.run(scriptedModel({ text: 'x' }), { tools: [mcpTool('s', server.url)] })
    expect(only(events, 'list_done')[0].tools.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  }
  // Two pages, once.
  expect([server.lists, server.sessions]).toEqual([2, 1])
})

test('usage is summed, indexes have no gaps, and each request has the full history', async () => {
  const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 4, reasoningTokens: 1, cacheWriteTokens: 2 }
  const model = scriptedModel(
    { reasoning: 'hm', text: 'let me see', calls: [['search', { q: 1 }]], usage },
    { calls: [['read', {}]], usage },
    { text: 'done', usage },
  )
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(only(events, 'tool_call').map(({ index }) => index)).toEqual([0, 1])
  expect(events.at(-1)).toMatchObject({
    usage: { inputTokens: 30, outputTokens: 15, cachedTokens: 12, reasoningTokens: 3, cacheWriteTokens: 6 },
    generations: 3,
  })
  expect(addedMessages(model, 2)).toMatchObject([
    {
      role: 'assistant',
      content: 'let me see',
      reasoning_content: 'hm',
      tool_calls: [{ id: 'call_1_0', function: { name: 'search', arguments: '{"q":1}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1_0', content: 'docs: 1' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_2_0' }] },
    { role: 'tool', tool_call_id: 'call_2_0', content: 'page' },
  ])
})

test('calls of a truncated generation do not run', async () => {
  const ranBefore = docs.ran.length
  const model = scriptedModel({ text: 'x', calls: [['search', '{"q":']], reason: 'length' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(docs.ran.length).toBe(ranBefore)
  expect(only(events, 'call_done')[0].result.status).toBe('incomplete')
  expect(endOf(events)).toMatchObject({ reason: 'length' })
})

test('a call with arguments that are no JSON fails, and the model sees why', async () => {
  const ranBefore = docs.ran.length
  const broken = { calls: [['search', '{"q":zwei}']], reason: 'length', hasBrokenCalls: true } as const
  const model = scriptedModel(broken, { text: 'sorry' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(docs.ran.length).toBe(ranBefore)
  expect(only(events, 'call_done')[0].arguments).toBe('{"q":zwei}')
  expect(only(events, 'call_done')[0].result.status).toBe('failed')
  expect(addedMessages(model, 1)[1]).toMatchObject({ role: 'tool', is_error: true })
  expect(endOf(events)).toMatchObject({ reason: 'stop' })
})

test('broken arguments of a function of the client end its turn', async () => {
  const broken = { calls: [['own', '{"q":zwei}']], reason: 'length', hasBrokenCalls: true } as const
  const events = await openLoop().run(scriptedModel(broken), {
    tools: [mcpTool('docs', docs.url)],
    request: withFunctions('own'),
  })
  expect(only(events, 'tool_call')[0]).not.toHaveProperty('tool')
  expect(endOf(events)).toMatchObject({ reason: 'length' })
})

test('a call of an undeclared tool is rejected; without gateway tools it is passed to the client', async () => {
  const model = scriptedModel({ calls: [['nonsense', {}]] }, { text: 'done' })
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(addedMessages(model, 1)[1].content).toBe('There is no tool named nonsense.')
  expect(endOf(events)).toMatchObject({ reason: 'stop' })
  const plain = await openLoop().run(scriptedModel({ calls: [['nonsense', {}]] }), { tools: [] })
  expect(only(plain, 'tool_call')[0].name).toBe('nonsense')
})

test('a worker failure in a later iteration fails the turn with its own error', async () => {
  const model = scriptedModel(
    { calls: [['search', { q: 1 }]], usage: { outputTokens: 3 } },
    { text: 'half', fails: brokenWorker() },
  )
  const events = await openLoop().run(model, { tools: [mcpTool('docs', docs.url)] })
  expect(events.at(-1)).toMatchObject({
    type: 'failed',
    error: { code: 'upstream_error' },
    usage: { outputTokens: 3 },
  })
  expect(only(events, 'call_done')).toHaveLength(1)
})

test('a client disconnect aborts the worker request or the tool call at once', async () => {
  const loop = openLoop()
  const hanging = scriptedModel({ text: 'x', hangs: true })
  const first = loop.start(hanging, { tools: [mcpTool('docs', docs.url)] }, 'auth:a', (event) => {
    if (event.type === 'text') first.running.abort()
  })
  await first.done
  expect([hanging.aborted, first.events.at(-1)?.type]).toEqual([1, 'text'])
  const cancelled = Promise.withResolvers<void>()
  const server = await startToolServer({
    slow: (_, { signal }) => new Promise(() => signal.addEventListener('abort', () => cancelled.resolve())),
  })
  ends.push(() => server.close())
  const calling = scriptedModel({ calls: [['slow', {}]] })
  const second = loop.start(calling, { tools: [mcpTool('s', server.url)] }, 'auth:a', (event) => {
    if (event.type === 'call_running') setTimeout(() => second.running.abort(), 50)
  })
  await Promise.all([second.done, cancelled.promise])
  expect(second.events.at(-1)?.type).toBe('call_running')
})

test('a slow reader delays the next iteration', async () => {
  const model = scriptedModel({ calls: [['search', { q: 1 }]] }, { text: 'done' })
  const loop = openLoop()
  const turn = loop.start(model, { tools: [mcpTool('docs', docs.url)] }, 'auth:a', (event) => {
    if (event.type === 'call_done') {
      loop.flow.hold()
      setTimeout(() => {
        expect(model.requests).toHaveLength(1)
        loop.flow.release()
      }, 20)
    }
  })
  const events = await turn.done
  expect(model.requests).toHaveLength(2)
  expect(events.at(-1)?.type).toBe('finished')
})
