/** Tools run by the gateway, as clients of responses see them: real tool servers and a scripted model. */
import { afterEach, expect, test } from 'vitest'
import { defineErrors, definePlugin, type RequestContext, Type } from '#kernel'
import { startToolServer, type ToolServer } from '../../support/mcp/tool-server.ts'
import { checkResponseEvents } from '../../support/response-events.ts'
import { sseAnswer } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { CHAT, chatAnswer, openResponses, type ResponseJson } from './responses-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function serveEcho(): Promise<ToolServer> {
  const server = await startToolServer({ echo: ({ text }) => `you said ${text}` })
  ends.push(() => server.close())
  return server
}

const LOOPBACK = { mcp: { clientServers: { allowsPrivate: true } } }
const calls = (...texts: string[]) =>
  chatAnswer({
    tool_calls: texts.map((text, index) => ({
      id: `c${index}`,
      name: 'echo',
      arguments: JSON.stringify({ text }),
    })),
  })
const mcp = (server: ToolServer, more: object = {}) => ({
  type: 'mcp',
  server_label: 'echoes',
  server_url: server.url,
  require_approval: 'never',
  ...more,
})
const kinds = ({ output }: ResponseJson) => output.map(({ type }: ResponseJson) => type)

test('the output is list, call and message in that order, and the secret is absent', async () => {
  const server = await serveEcho()
  const { create, workers, fetchJson, asked } = await openResponses(undefined, { plugins: LOOPBACK })
  workers[0].once(CHAT, calls('hi'))
  workers[0].once(CHAT, chatAnswer('done'))
  const reply = await create({ input: 'go', tools: [mcp(server, { authorization: 'very-secret' })] })
  expect(kinds(reply)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  expect(reply.output[0]).toMatchObject({ server_label: 'echoes', tools: [{ name: 'echo' }] })
  expect(reply.output[1]).toMatchObject({
    id: expect.stringMatching(/^mcp_/),
    status: 'completed',
    name: 'echo',
    server_label: 'echoes',
    arguments: '{"text":"hi"}',
    output: 'you said hi',
    error: null,
  })
  expect(reply.usage.total_tokens).toBe(30)
  expect(asked()[1].messages.at(-1)).toMatchObject({ role: 'tool', content: 'you said hi' })
  const stored = await fetchJson('GET', `/v1/responses/${reply.id}`)
  expect(stored).toEqual(reply)
  expect(JSON.stringify([reply, stored])).not.toMatch(/very-secret|_modelText|_fingerprint/)
})

test('a stream has the same items, with every event in its place', async () => {
  const server = await serveEcho()
  const { stream, workers } = await openResponses(undefined, { plugins: LOOPBACK })
  workers[0].once(CHAT, calls('hi'))
  workers[0].once(CHAT, chatAnswer('done'))
  const { types, response } = await stream({ input: 'go', tools: [mcp(server)] })
  expect(kinds(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  expect(types.filter((type) => type.includes('mcp') && !type.endsWith('delta'))).toEqual([
    'response.mcp_list_tools.in_progress',
    'response.mcp_list_tools.completed',
    'response.mcp_call.in_progress',
    'response.mcp_call_arguments.done',
    'response.mcp_call.completed',
  ])
})

test('an unreachable server is a 424, or the failure of a stream', async () => {
  const server = await serveEcho()
  const { create, stream, workers } = await openResponses(undefined, { plugins: LOOPBACK })
  await server.close()
  ends.length = 0
  const refused = await create({ input: 'go', tools: [mcp(server)] }, 424)
  expect(refused.error).toMatchObject({
    type: 'external_connector_error',
    code: 'connect_mcp_server_failed',
    param: 'tools',
  })
  const { types } = await stream({ input: 'go', tools: [mcp(server)] })
  expect(types).toContain('response.mcp_list_tools.failed')
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
  expect(workers[0].requests).toEqual([])
})

test('a turn with server and client calls, and its follow-up', async () => {
  const server = await serveEcho()
  const { create, workers } = await openResponses(undefined, { plugins: LOOPBACK })
  workers[0].once(
    CHAT,
    chatAnswer({
      tool_calls: [
        { id: 'c1', name: 'echo', arguments: '{"text":"hi"}' },
        { id: 'c2', name: 'mine', arguments: '{}' },
      ],
    }),
  )
  workers[0].script(CHAT, chatAnswer('done'))
  const tools = [mcp(server), { type: 'function', name: 'mine' }]
  const first = await create({ input: 'go', tools })
  expect([first.status, kinds(first)]).toEqual(['completed', ['mcp_list_tools', 'mcp_call', 'function_call']])
  const output = { type: 'function_call_output', call_id: 'c2', output: 'mine too' }
  const second = await create({ input: [output], tools, previous_response_id: first.id })
  expect([second.status, kinds(second)]).toEqual(['completed', ['message']])
})

test('a call that requires approval waits; approval runs it, denial does not, each only once', async () => {
  const server = await serveEcho()
  for (const approve of [true, false]) {
    const { create, workers, asked } = await openResponses(undefined, { plugins: LOOPBACK })
    const tools = [mcp(server, { require_approval: 'always' })]
    workers[0].once(CHAT, calls('hi'))
    workers[0].script(CHAT, chatAnswer('done'))
    const before = server.ran.length
    const first = await create({ input: 'go', tools })
    expect(kinds(first)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
    expect(server.ran).toHaveLength(before)
    const answer = {
      type: 'mcp_approval_response',
      approval_request_id: first.output[1].id,
      approve,
      reason: 'because',
    }
    const second = await create({ input: [answer], tools, previous_response_id: first.id })
    expect(kinds(second)).toEqual(approve ? ['mcp_call', 'message'] : ['message'])
    if (approve) expect(second.output[0].approval_request_id).toBe(first.output[1].id)
    expect(server.ran).toHaveLength(before + (approve ? 1 : 0))
    const again = await create({ input: [answer], tools, previous_response_id: second.id }, 400)
    expect(again.error.code).toBe('approval_already_answered')
    await create({ input: 'and then?', tools, previous_response_id: second.id })
    expect(
      asked()
        .at(-1)
        .messages.filter(({ role }: ResponseJson) => role === 'tool'),
    ).toHaveLength(1)
    const unknown = { ...answer, approval_request_id: 'mcpr_no' }
    expect((await create({ input: [unknown], tools }, 400)).error.code).toBe('approval_request_not_found')
  }
})

test('tools listed earlier in the chain are not listed again, and can be called', async () => {
  const [a, b] = [await serveEcho(), await startToolServer({ other: () => 'x' })]
  ends.push(() => b.close())
  const { create, workers } = await openResponses(chatAnswer('x'), { plugins: LOOPBACK })
  const first = await create({ input: 'one', tools: [mcp(a)] })
  workers[0].once(CHAT, calls('again'))
  const second = await create({ input: 'two', tools: [mcp(a)], previous_response_id: first.id })
  const both = [mcp(a), mcp(b, { server_label: 'others' })]
  const third = await create({ input: 'three', tools: both, previous_response_id: second.id })
  expect([first, second, third].map(kinds)).toEqual([
    ['mcp_list_tools', 'message'],
    ['mcp_call', 'message'],
    ['mcp_list_tools', 'message'],
  ])
  expect(third.output[0].server_label).toBe('others')
})

test('a mapped built-in tool has its own item type and events', async () => {
  const server = await startToolServer({ search: ({ query }) => `found ${query} at https://example.com/x` })
  ends.push(() => server.close())
  const plugins = {
    mcp: {
      servers: [{ label: 'engine', url: server.url }],
      builtIns: [{ type: 'web_search', server: 'engine', tool: 'search' }],
    },
  }
  const { stream, workers, fetchJson } = await openResponses(undefined, { plugins })
  workers[0].once(
    CHAT,
    chatAnswer({ tool_calls: [{ id: 'c', name: 'web_search', arguments: '{"query":"weir"}' }] }),
  )
  workers[0].once(CHAT, chatAnswer('done'))
  const { response, types } = await stream({
    input: 'go',
    tools: [{ type: 'web_search_preview' }],
    include: ['web_search_call.action.sources'],
  })
  expect(response.output).toMatchObject([
    {
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'weir', sources: [{ type: 'url', url: 'https://example.com/x' }] },
    },
    { type: 'message' },
  ])
  expect(types.filter((type) => type.includes('web_search'))).toEqual([
    'response.web_search_call.in_progress',
    'response.web_search_call.searching',
    'response.web_search_call.completed',
  ])
  expect(response.tools).toEqual([{ type: 'web_search_preview' }])
  expect(await fetchJson('GET', `/v1/responses/${response.id}`)).toEqual(response)
})

test("calls on an operator's server are absent from a conversation and a background response", async () => {
  const server = await serveEcho()
  const plugins = {
    conversations: {},
    responses: { background: { pollMs: 50 } },
    mcp: {
      servers: [
        { label: 'secret-hr', url: server.url, isInternal: true },
        { label: 'engine', url: server.url },
      ],
      builtIns: [{ type: 'web_search', server: 'engine', tool: 'echo' }],
    },
  }
  const { create, post, workers, fetchJson, gateway } = await openResponses(chatAnswer('done'), { plugins })
  const { id: conversation } = (await (await post('/v1/conversations', {})).json()) as ResponseJson
  const tools = [{ type: 'mcp', server_label: 'secret-hr', require_approval: 'never' }]
  workers[0].once(CHAT, calls('one', 'two', 'three'))
  await create({ input: 'first', conversation, tools })
  workers[0].once(
    CHAT,
    chatAnswer({ tool_calls: [{ id: 'c', name: 'web_search', arguments: '{"query":"weir"}' }] }),
  )
  await create({ input: 'second', conversation, tools: [{ type: 'web_search_preview' }] })
  const path = `/v1/conversations/${conversation}/items`
  const whole = await fetchJson('GET', `${path}?order=asc`)
  const shown = ['message', 'message', 'message', 'web_search_call', 'message']
  expect(whole.data.map(({ type }: ResponseJson) => type)).toEqual(shown)
  for (const limit of [1, 2, 3, 5]) {
    const pages: ResponseJson[] = []
    do {
      const after = pages.length === 0 ? '' : `&after=${pages.at(-1).last_id}`
      pages.push(await fetchJson('GET', `${path}?order=asc&limit=${limit}${after}`))
    } while (pages.at(-1).has_more)
    expect(pages.flatMap(({ data }) => data)).toEqual(whole.data)
    expect(pages).toHaveLength(Math.ceil(5 / limit))
  }
  const one = await fetchJson('GET', `${path}/${whole.data[3].id}`)
  expect(JSON.stringify([whole, one])).not.toMatch(/"_/)

  const { id } = await create({ input: 'third', tools, background: true })
  const stream = openSse(`${gateway.url}/v1/responses/${id}?stream=true`)
  await stream.done
  const { response } = checkResponseEvents(stream.events)
  expect(response.status).toBe('completed')
  const visible = JSON.stringify([stream.events, await fetchJson('GET', `/v1/responses/${id}`)])
  expect(visible).not.toContain('secret-hr')
})

test('a hook that fails a request between two model turns reports its reason, stored or not', async () => {
  const server = await serveEcho()
  let last: RequestContext | undefined
  const own = definePlugin({
    manifest: { name: 'own', version: '0.1.0', description: 'test', config: Type.Object({}) },
    register: (host) => {
      const keep = (ctx: RequestContext) => {
        last = ctx
      }
      host.hook('onRequest', keep, { scope: 'all' })
    },
  })
  const failures = defineErrors('own', {
    not_now: { kind: 'unavailable', source: 'gateway', text: () => 'somebody else goes first' },
  })
  const forever = new Promise(() => {})
  for (const [stream, store] of [
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ]) {
    const { post, workers } = await openResponses(() => sseAnswer([{ until: forever }]), {
      plugins: LOOPBACK,
      own: [own],
    })
    workers[0].once(CHAT, calls('hi'))
    const body = { model: 'test-model', input: 'go', tools: [mcp(server)], stream, store }
    const reply = post('/v1/responses', body)
    await workers[0].received(CHAT, 2)
    last?.fail(failures.not_now())
    const text = await (await reply).text()
    expect((await reply).status).toBe(stream ? 200 : 503)
    expect(text).toContain('"code":"not_now"')
    if (!stream) continue
    expect(text.match(/^event: (error|response.failed)$/gm)).toEqual([
      'event: error',
      'event: response.failed',
    ])
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  }
})
