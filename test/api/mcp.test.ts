/** The tool loop in a gateway: a client format with one route, an HTTP chat worker, a real tool server. */
import { afterEach, expect, test } from 'vitest'
import type { GenerationEvent, ToolLoopService, ToolTurn } from '#kernel'
import { ToolCallGuards, ToolLoop } from '#kernel'
import type { RouteDefinition } from '../../kernel/index.ts'
import { apiErrorFormat, definePlugin, Type } from '../../kernel/index.ts'
import { mcpTool, only, withFunctions } from '../support/mcp/run-turn.ts'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** Responds with all events of a turn as lines of JSON. */
function toolFront(tools: ToolTurn['tools'], seen: GenerationEvent[]) {
  const route = (loop: ToolLoopService): RouteDefinition => ({
    method: 'POST',
    path: '/turn',
    access: 'api',
    errors: apiErrorFormat,
    docs: { summary: 'turn', tag: 'test', responses: {} },
    handler: (ctx) => {
      const { stream = true } = ctx.bodyJson() as { stream?: boolean }
      const turn: ToolTurn = {
        request: { ...withFunctions(), model: 'test-model' },
        toolChoice: null,
        tools,
        approvals: [],
        listed: [],
        origins: new Map(),
        limits: { maxToolCalls: null, atLimit: 'answer' },
        stream,
      }
      const onEvent = (event: GenerationEvent) => {
        seen.push(event)
        if (event.type === 'failed') ctx.fail(event.error)
        if (event.type === 'finished') ctx.text(200, JSON.stringify(event))
      }
      loop.run(ctx, turn, { onEvent })
    },
  })
  return definePlugin({
    manifest: {
      name: 'tool-front',
      version: '0.1.0',
      description: 'test',
      uses: [ToolLoop, ToolCallGuards],
      config: Type.Object({}, { additionalProperties: false }),
    },
    register(host) {
      const guards = host.use(ToolCallGuards)
      guards.add({
        name: 'front',
        check: ({ arguments: { text } }) =>
          text === 'bad' ? { action: 'reject', text: 'no such words' } : { action: 'continue' },
      })
      host.route(route(host.use(ToolLoop)))
    },
  })
}

const call = (text: string) => ({
  id: 'c1',
  type: 'function',
  function: { name: 'echo', arguments: JSON.stringify({ text }) },
})
const chunk = (delta: unknown, reason: string | null = null) =>
  JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })
const usage = (completion_tokens: number) =>
  JSON.stringify({
    id: 'c',
    created: 1,
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens },
  })
const calling = (text: string) =>
  sseAnswer([
    chunk({ tool_calls: [{ index: 0, ...call(text) }] }),
    chunk({}, 'tool_calls'),
    usage(2),
    '[DONE]',
  ])
const answering = sseAnswer([chunk({ content: 'done' }), chunk({}, 'stop'), usage(3), '[DONE]'])

async function open(scripts: readonly Script[], tool: ToolServer, section: Record<string, unknown> = {}) {
  const seen: GenerationEvent[] = []
  const fleet = await openFleet({
    workers: [{}],
    plugins: { debug: {}, mcp: { clientServers: { allowsPrivate: true }, ...section } },
    own: [toolFront([mcpTool('tools', tool.url, { authorization: 'secret-token-1' })], seen)],
  })
  for (const script of scripts) fleet.workers[0].once(CHAT, script)
  return { ...fleet, seen }
}

async function serveEcho(): Promise<ToolServer> {
  const server = await startToolServer({ echo: ({ text }) => `you said ${text}` })
  ends.push(() => server.close())
  return server
}

test('a turn over an HTTP worker, streamed', async () => {
  const { get, post, workers, seen } = await open([calling('hi'), answering], await serveEcho())
  const reply = await post('/turn', {}, { 'x-request-id': 'turn-1' })
  expect(await reply.json()).toMatchObject({
    generations: 2,
    usage: { inputTokens: 2, outputTokens: 5 },
  })
  expect(only(seen, 'call_done')[0].result.output).toBe('you said hi')
  const bodies = workers[0].requestsTo(CHAT).map((request) => request.json() as Record<string, unknown>)
  expect(bodies[0].tools).toMatchObject([{ type: 'function', function: { name: 'echo' } }])
  expect(bodies[1].messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', tool_calls: [call('hi')] },
    { role: 'tool', tool_call_id: 'c1', content: 'you said hi' },
  ])
  expect(JSON.stringify(bodies)).not.toContain('secret-token-1')
  const record = await (await get('/debug/requests/turn-1')).json()
  expect(record).toMatchObject({
    requests: [{ steps: [{ kind: 'tool', name: 'echo at client', error: null }] }],
  })
})

test('a turn over an HTTP worker, non-streamed; a guard of another plugin denies the call', async () => {
  const message = { role: 'assistant', content: null, tool_calls: [call('bad')] }
  const whole = (of: unknown, finish_reason: string) =>
    jsonAnswer({ choices: [{ index: 0, message: of, finish_reason }] })
  const tool = await serveEcho()
  const { post, workers, seen } = await open(
    [whole(message, 'tool_calls'), whole({ content: 'done' }, 'stop')],
    tool,
  )
  expect((await post('/turn', { stream: false })).status).toBe(200)
  expect(only(seen, 'call_done')[0].result).toMatchObject({ status: 'failed', modelText: 'no such words' })
  expect(tool.ran).toEqual([])
  expect(workers[0].requestsTo(CHAT)).toHaveLength(2)
})

test('an unreachable tool server is a 424 with its own code, and no worker is called', async () => {
  const tool = await serveEcho()
  const { post, workers } = await open([answering], tool)
  await tool.close()
  ends.length = 0
  const reply = await post('/turn', {})
  expect(reply.status).toBe(424)
  expect(await reply.json()).toMatchObject({
    error: { type: 'external_connector_error', code: 'connect_mcp_server_failed', param: 'tools' },
  })
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test('a tool server URL that clients may not use is rejected before any request', async () => {
  const tool = await serveEcho()
  const { post } = await open([answering], tool, { clientServers: {} })
  const reply = await post('/turn', {})
  expect([reply.status, await reply.json()]).toMatchObject([
    400,
    { error: { code: 'invalid_server_url', param: 'tools[0].server_url' } },
  ])
  expect(tool.sessions).toBe(0)
})

test('a client disconnect cancels the running tool', async () => {
  const started = Promise.withResolvers<void>()
  const cancelled = Promise.withResolvers<void>()
  const tool = await startToolServer({
    echo: (_, { signal }) => {
      signal.addEventListener('abort', () => cancelled.resolve())
      started.resolve()
      return new Promise(() => {})
    },
  })
  ends.push(() => tool.close())
  const { gateway, seen } = await open([calling('hi')], tool)
  const controller = new AbortController()
  const reply = fetch(`${gateway.url}/turn`, { method: 'POST', body: '{}', signal: controller.signal }).catch(
    () => null,
  )
  await started.promise
  controller.abort()
  await Promise.all([cancelled.promise, reply])
  expect(seen.at(-1)?.type).toBe('call_running')
})
