/** Calls that need approval, forced choices, built-in tools, hidden tools, guards. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { ApprovalAnswer, LoopToolChoice } from '#kernel'
import {
  addedMessages,
  endOf,
  mcpTool,
  offeredNames,
  only,
  TestLoop,
  withFunctions,
} from '../../../../test/support/mcp/run-turn.ts'
import { scriptedModel } from '../../../../test/support/mcp/scripted-model.ts'
import { startToolServer, type ToolServer } from '../../../../test/support/mcp/tool-server.ts'

const loops: TestLoop[] = []
let files: ToolServer
let web: ToolServer

beforeAll(async () => {
  files = await startToolServer({
    read: { annotations: { readOnlyHint: true }, run: ({ path }) => `read ${path}` },
    write: ({ path }) => `wrote ${path}`,
  })
  web = await startToolServer({
    find: (input) => JSON.stringify(input),
    breaks: () => ({ content: [], isError: true }),
  })
})

afterAll(async () => {
  await files.close()
  await web.close()
})

afterEach(async () => {
  for (const loop of loops.splice(0)) await loop.pool.close()
})

function openLoop(section: Record<string, unknown> = {}): TestLoop {
  const loop = new TestLoop(section)
  loops.push(loop)
  return loop
}

const approval = (isApproved: boolean, reason?: string): ApprovalAnswer => ({
  approvalId: 'mcpr_1',
  label: 'files',
  name: 'write',
  arguments: '{"path":"/a"}',
  isApproved,
  reason,
})

test('calls that need approval are requested and not run; others run in the same turn', async () => {
  const before = files.ran.length
  const calls = [
    ['write', { path: '/a' }],
    ['read', { path: '/b' }],
  ] as const
  const rule = { never: { toolNames: ['read'] } }
  const events = await openLoop().run(scriptedModel({ calls }), {
    tools: [mcpTool('files', files.url, { approval: rule })],
  })
  expect(files.ran.slice(before)).toEqual(['read'])
  expect(only(events, 'approval_requested')).toEqual([
    {
      type: 'approval_requested',
      choice: 0,
      callId: 'call_1_0',
      label: 'files',
      name: 'write',
      arguments: '{"path":"/a"}',
    },
  ])
  expect(only(events, 'call_done')).toMatchObject([{ index: 0 }])
  expect(endOf(events)).toMatchObject({ reason: 'tool_calls' })
})

test('an approved call runs before the generation, with the id of its approval', async () => {
  const model = scriptedModel({ text: 'done' })
  const events = await openLoop().run(model, {
    tools: [mcpTool('files', files.url, { approval: 'always' })],
    approvals: [approval(true)],
  })
  expect(only(events, 'tool_call')[0].approvalId).toBe('mcpr_1')
  expect(only(events, 'call_done')[0]).toMatchObject({
    arguments: '{"path":"/a"}',
    result: { output: 'wrote /a' },
  })
  expect(addedMessages(model, 0)).toMatchObject([
    {
      role: 'assistant',
      tool_calls: [{ id: 'mcpr_1', function: { name: 'write', arguments: '{"path":"/a"}' } }],
    },
    { role: 'tool', tool_call_id: 'mcpr_1', content: 'wrote /a' },
  ])
})

test('a denied call does not run, and the model receives the reason', async () => {
  const before = files.ran.length
  const model = scriptedModel({ text: 'done' })
  const events = await openLoop().run(model, {
    tools: [mcpTool('files', files.url, { approval: 'always' })],
    approvals: [approval(false, 'not today'), { ...approval(true), approvalId: 'mcpr_2', name: 'gone' }],
  })
  expect(files.ran.length).toBe(before)
  // The client sees the outcome of an approved call.
  expect(only(events, 'call_done')).toMatchObject([{ result: { status: 'failed' } }])
  expect(only(events, 'tool_call')[0].approvalId).toBe('mcpr_2')
  expect(
    addedMessages(model, 0)
      .slice(1)
      .map(({ content }) => content),
  ).toEqual(['The user denied this call: not today', 'This tool is no longer available.'])
})

test("the operator's default approval applies if the request has none", async () => {
  const model = scriptedModel({ calls: [['read', {}]] })
  const tool = mcpTool('files', files.url, { approval: undefined })
  const events = await openLoop({ defaultApproval: 'always' }).run(model, { tools: [tool] })
  expect(only(events, 'approval_requested')).toHaveLength(1)
})

test('a forced choice applies to the first iteration only', async () => {
  const choices = async (toolChoice: LoopToolChoice) => {
    const model = scriptedModel({ calls: [['read', {}]] }, { text: 'done' })
    await openLoop().run(model, {
      tools: [mcpTool('files', files.url), mcpTool('web', web.url)],
      request: withFunctions('own'),
      toolChoice,
    })
    return [model.requests.map((request) => request.toolChoice), offeredNames(model)]
  }
  const all = ['own', 'read', 'write', 'find', 'breaks']
  expect(await choices({ mode: 'required' })).toEqual([
    [{ mode: 'required' }, { mode: 'auto' }],
    [all, all],
  ])
  expect(await choices({ mode: 'one', tool: { kind: 'mcp', label: 'files', name: 'read' } })).toEqual([
    [{ mode: 'function', name: 'read' }, { mode: 'auto' }],
    [all, all],
  ])
  expect(await choices({ mode: 'one', tool: { kind: 'mcp', label: 'FILES' } })).toEqual([
    [{ mode: 'required' }, { mode: 'auto' }],
    [['read', 'write'], all],
  ])
  const some = {
    mode: 'allowed',
    isRequired: true,
    tools: [{ kind: 'mcp', label: 'files', name: 'read' }],
  } as const
  expect(await choices(some)).toEqual([
    [{ mode: 'required' }, { mode: 'auto' }],
    [['read'], ['read']],
  ])
})

test('a call outside the allowed tools is not run', async () => {
  const before = files.ran.length
  const model = scriptedModel({ calls: [['write', {}]] }, { text: 'done' })
  const toolChoice = {
    mode: 'allowed',
    isRequired: false,
    tools: [{ kind: 'mcp', label: 'files', name: 'read' }],
  } as const
  await openLoop().run(model, { tools: [mcpTool('files', files.url)], toolChoice })
  expect(files.ran.length).toBe(before)
  expect(addedMessages(model, 1)[1]).toMatchObject({ content: 'There is no tool named write.' })
})

test('a choice of a tool that the request lacks is rejected before any tool runs', async () => {
  const before = files.ran.length
  const toolChoice = { mode: 'one', tool: { kind: 'mcp', label: 'files', name: 'nope' } } as const
  const turn = { tools: [mcpTool('files', files.url)], toolChoice, approvals: [approval(true)] }
  const events = await openLoop().run(scriptedModel({ text: 'x' }), turn)
  expect(events.at(-1)).toMatchObject({
    error: { code: 'tool_choice_tool_not_found', status: 400, param: 'tool_choice' },
  })
  expect(files.ran.length).toBe(before)
})

const withSearch = () => ({
  servers: [{ label: 'engine', url: web.url }],
  builtIns: [
    {
      type: 'web_search',
      server: 'engine',
      tool: 'find',
      arguments: { query: 'q' },
      settings: { user_location: 'where' },
      fixed: { limit: 5 },
    },
  ],
})
const search = {
  kind: 'built_in',
  type: 'web_search',
  settings: { user_location: 'Bonn' },
  param: 'tools[0]',
} as const

test('a built-in tool runs on its mapped server, which is hidden from clients', async () => {
  const model = scriptedModel({ calls: [['web_search', { query: 'x' }]] }, { text: 'done' })
  const events = await openLoop(withSearch()).run(model, { tools: [search] })
  expect(only(events, 'list_started', 'list_done')).toEqual([])
  expect(only(events, 'tool_call')[0]).toMatchObject({
    index: 0,
    tool: { kind: 'built_in', type: 'web_search' },
  })
  const [{ result }] = only(events, 'call_done')
  expect(JSON.parse(result.output)).toEqual({ q: 'x', where: 'Bonn', limit: 5 })
  expect(model.requests[0].tools[0].function).toMatchObject({
    name: 'web_search',
    parameters: { required: ['query'] },
  })
  expect(JSON.stringify(events)).not.toContain('engine')
})

test('a built-in tool without a mapping is dropped, or rejected in strict mode', async () => {
  const model = scriptedModel({ text: 'done' })
  const events = await openLoop().run(model, { tools: [search] })
  expect(offeredNames(model)).toEqual([[]])
  expect(events.at(-1)?.type).toBe('finished')
  const refused = () => openLoop({ isStrict: true }).start(model, { tools: [search] })
  expect(refused).toThrow(
    expect.objectContaining({ code: 'tool_not_available', param: 'tools[0].type', status: 400 }),
  )
})

test('an internal server exposes neither label nor tools nor errors', async () => {
  const section = { servers: [{ label: 'secret-hr', url: web.url, isInternal: true }] }
  const model = scriptedModel({ calls: [['find', { q: 1 }]] }, { calls: [['breaks', {}]] }, { text: 'done' })
  const loop = openLoop(section)
  const events = await loop.run(model, { tools: [mcpTool('secret-hr', null)] })
  expect(model.requests).toHaveLength(3)
  const shown = events.filter(({ type }) => type !== 'hidden_call')
  expect(JSON.stringify(shown)).not.toMatch(/secret-hr|find|breaks|\bq\b/)
  expect(only(events, 'hidden_call')[0]).toMatchObject({ tool: { name: 'find' }, modelText: '{"q":1}' })
  const down = { servers: [{ label: 'secret-hr', url: 'http://127.0.0.1:9/mcp', isInternal: true }] }
  const failed = await openLoop(down).run(model, { tools: [mcpTool('secret-hr', null)] })
  expect(failed.map(({ type }) => type)).toEqual(['failed'])
  expect(JSON.stringify(failed) + String((failed[0] as { error: Error }).error)).not.toContain('secret-hr')
})

test('labels, servers and URLs are checked before any connection is opened', () => {
  const code = (...tools: Parameters<typeof mcpTool>[]) => {
    try {
      new TestLoop({ clientServers: {} }).start(scriptedModel({}), {
        tools: tools.map((args) => mcpTool(...args)),
      })
      return 'none'
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  const url = 'https://mcp.example.com/'
  expect(code(['a', url], ['A', url])).toBe('mcp_tool_duplicate_server_label')
  expect(code(['a', null])).toBe('unknown_mcp_server')
  expect(code(['1a', url])).toBe('invalid_server_label')
  expect(code(['a', 'http://127.0.0.1/'])).toBe('invalid_server_url')
  expect(code(['a', 'file:///x'])).toBe('invalid_server_url')
  expect(code(['a', url, { headers: new Map([['Host', 'x']]) }])).toBe('invalid_mcp_header')
  expect(code(['a', url, { headers: new Map([['x', 'a\r\nb: c']]) }])).toBe('invalid_mcp_header')
  const twice = { headers: new Map([['Authorization', 'x']]), authorization: 'y' }
  expect(code(['a', url, twice])).toBe('invalid_mcp_header')
})

test('the operator restricts who may use a configured server, and which of its tools', async () => {
  const server = { label: 'files', url: files.url, tenants: ['auth:a'], deniedTools: ['write'] }
  const loop = openLoop({ servers: [server] })
  const model = scriptedModel({ text: 'done' })
  await loop.run(model, { tools: [mcpTool('files', null)] }, 'auth:a')
  expect(offeredNames(model)).toEqual([['read']])
  const denying = scriptedModel({ text: 'done' })
  await loop.run(denying, { tools: [mcpTool('files', null, { deniedTools: ['read'] })] }, 'auth:a')
  expect(offeredNames(denying)).toEqual([[]])
  const other = () => loop.start(model, { tools: [mcpTool('files', null)] }, 'auth:b')
  expect(other).toThrow(expect.objectContaining({ code: 'unknown_mcp_server' }))
})

test('a guard may reject a call or change its arguments; a failing guard rejects it', async () => {
  const calls = ['/stop', '/change', '/crash', '/pass'].map((path) => ['read', { path }] as const)
  const model = scriptedModel({ calls }, { text: 'done' })
  const loop = openLoop()
  const seen: unknown[] = []
  loop.guard((call) => {
    seen.push([call.tenant, call.tool, call.server])
    if (call.arguments.path === '/stop') return { action: 'reject', text: 'House rules forbid this.' }
    if (call.arguments.path === '/change') return { action: 'modify', arguments: { path: '/changed' } }
    if (call.arguments.path === '/crash') throw new Error('oops')
    return { action: 'continue' }
  })
  const events = await loop.run(model, { tools: [mcpTool('files', `${files.url}?key=abc`)] })
  expect(seen[0]).toEqual(['auth:a', { kind: 'mcp', label: 'files', name: 'read' }, files.url])
  expect(
    addedMessages(model, 1)
      .slice(1)
      .map(({ content }) => content),
  ).toEqual([
    'House rules forbid this.',
    'read /changed',
    'The call was stopped by a guard that failed.',
    'read /pass',
  ])
  expect(only(events, 'call_done')[1].arguments).toBe('{"path":"/change"}')
})

test('calls of a tenant beyond its limit fail at once, others are not delayed', async () => {
  const all = Promise.withResolvers<string>()
  const server = await startToolServer({ wait: () => all.promise })
  const loop = openLoop({ limits: { maxCallsPerTenant: 1 } })
  const calls = [['wait', {}]] as const
  const tools = [mcpTool('s', server.url)]
  const first = loop.start(scriptedModel({ calls }, { text: 'x' }), { tools }, 'auth:a', (event) => {
    if (event.type === 'call_running') started.resolve()
  })
  const started = Promise.withResolvers<void>()
  await started.promise
  const second = await loop.run(scriptedModel({ calls }, { text: 'x' }), { tools })
  expect(only(second, 'call_done')[0].result.modelText).toContain('Too many tools')
  all.resolve('free')
  expect(only(await first.done, 'call_done')[0].result.output).toBe('free')
  const third = await loop.run(scriptedModel({ calls }, { text: 'x' }), { tools })
  expect(only(third, 'call_done')[0].result.output).toBe('free')
  await server.close()
})

test('calls of earlier turns get the current names of their tools', async () => {
  const model = scriptedModel({ text: 'done' })
  const call = (id: string, name: string) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: '{}' },
  })
  const messages = [
    { role: 'user' as const, content: 'hi' },
    {
      role: 'assistant' as const,
      content: null,
      tool_calls: [call('c1', 'x'), call('c2', 'y'), call('c3', 'own')],
    },
  ]
  await openLoop().run(model, {
    tools: [mcpTool('files', files.url)],
    request: { ...withFunctions('read', 'own'), prompt: { kind: 'chat', messages } },
    origins: new Map([
      ['c1', { kind: 'mcp', label: 'files', name: 'read' }],
      ['c2', { kind: 'mcp', label: 'old', name: 'gone tool' }],
    ]),
  })
  const names = addedMessages(model, 0)[0].tool_calls?.map((each) => each.function.name)
  expect(names).toEqual(['mcp_files_read', 'gone_tool', 'own'])
})
