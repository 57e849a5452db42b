/** Approval responses: run, or rejected with an error, in every form of the request. */
import { afterEach, describe, expect, test } from 'vitest'
import { startToolServer, type ToolServer } from '../../support/mcp/tool-server.ts'
import { openSse } from '../../support/sse-client.ts'
import {
  CHAT,
  chatAnswer,
  type Json,
  openResponses,
  RESPONSES,
  type ResponseJson,
  type ResponsesFleet,
} from './responses-fleet.ts'
import { connect } from './socket-client.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function serve(...names: string[]): Promise<ToolServer> {
  const run = ({ text }: Json) => `you said ${text}`
  const server = await startToolServer(Object.fromEntries(names.map((name) => [name, run])))
  ends.push(() => server.close())
  return server
}

const mcp = (server: ToolServer, more: Json = {}) => ({
  type: 'mcp',
  server_label: 'echoes',
  server_url: server.url,
  require_approval: 'always',
  ...more,
})
const asked = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  server_label: 'echoes',
  name: 'echo',
  arguments: '{"text":"hi"}',
}
const answer = (more: Json = {}) => ({
  type: 'mcp_approval_response',
  approval_request_id: 'mcpr_1',
  approve: true,
  ...more,
})
const question = { role: 'user', content: 'go' }
const input = [question, asked, answer()]
const kinds = ({ output }: ResponseJson) => output.map(({ type }: ResponseJson) => type)
const toolTexts = ({ messages }: ResponseJson) =>
  messages.filter(({ role }: ResponseJson) => role === 'tool').map(({ content }: ResponseJson) => content)

/** One server for every tenant, one of another tenant, one internal. */
async function open(): Promise<ResponsesFleet> {
  const url = 'http://127.0.0.1:9/mcp'
  return openResponses(chatAnswer('done'), {
    plugins: {
      responses: { background: { pollMs: 50 } },
      mcp: {
        clientServers: { allowsPrivate: true },
        servers: [
          { label: 'calendar', url },
          { label: 'theirs', url, tenants: ['somebody'] },
          { label: 'secret-hr', url, isInternal: true },
        ],
      },
    },
  })
}

/** Sends a request in each form, and returns the status and the error. */
const FORMS: Record<string, (fleet: ResponsesFleet, body: Json) => Promise<[number, ResponseJson]>> = {
  whole: async ({ post }, body) => {
    const reply = await post(RESPONSES, body)
    return [reply.status, ((await reply.json()) as ResponseJson).error]
  },
  streamed: async ({ gateway }, body) => {
    const sse = openSse(gateway.url + RESPONSES, { body: { ...body, stream: true } })
    await sse.done
    return [sse.status, JSON.parse(sse.text()).error]
  },
  background: async ({ post }, body) => {
    const reply = await post(RESPONSES, { ...body, background: true })
    return [reply.status, ((await reply.json()) as ResponseJson).error]
  },
  'on a socket': async ({ gateway }, body) => {
    const { turn } = await connect(gateway.url)
    const [event] = await turn(body)
    return [event.status, event.error]
  },
}

describe.each(Object.entries(FORMS))('an approval, %s', (_, send) => {
  test('is rejected if its server is not among the tools', async () => {
    const fleet = await open()
    const server = await serve('echo')
    const others = [mcp(server, { server_label: 'others' }), { type: 'function', name: 'mine' }]
    for (const tools of [[], others]) {
      const [status, error] = await send(fleet, { model: 'test-model', input, tools })
      expect([status, error]).toMatchObject([400, { code: 'unknown_mcp_server', param: 'input' }])
      expect(error.message).toContain("'echoes'")
      expect(error.message).toContain(`declared: ${tools.length === 0 ? 'none' : "'others'"}`)
      expect(error.message).toContain("configured: 'calendar'")
      expect(error.message).not.toMatch(/theirs|secret-hr/)
    }
    expect([server.ran, fleet.workers[0].requests]).toEqual([[], []])
  })

  test('is rejected if its request is unknown or already answered', async () => {
    const fleet = await open()
    const tools = [mcp(await serve('echo'))]
    const unknown = [question, answer({ approval_request_id: 'mcpr_no' })]
    expect(await send(fleet, { model: 'test-model', input: unknown, tools })).toMatchObject([
      400,
      { code: 'approval_request_not_found' },
    ])
    const twice = [...input, answer({ approve: false })]
    expect(await send(fleet, { model: 'test-model', input: twice, tools })).toMatchObject([
      400,
      { code: 'approval_already_answered' },
    ])
    expect(fleet.workers[0].requests).toEqual([])
  })

  test('of an unconfigured server is rejected with the list of configured servers', async () => {
    const fleet = await open()
    const tools = [{ type: 'mcp', server_label: 'theirs' }]
    const [status, error] = await send(fleet, { model: 'test-model', input: 'go', tools })
    expect([status, error]).toMatchObject([400, { code: 'unknown_mcp_server', param: 'tools[0]' }])
    expect(error.message).toContain("configured: 'calendar'")
  })
})

test('an approval is rejected if no plugin runs tools', async () => {
  const { create } = await openResponses(chatAnswer('done'))
  const { error } = await create({ input }, 400)
  expect(error).toMatchObject({ code: 'tool_not_available', param: 'input' })
  await create({ input, background: true }, 400)
})

test('long labels are shortened in the error', async () => {
  const { create } = await open()
  const long = { ...asked, server_label: 'x'.repeat(100_000) }
  const { error } = await create({ input: [question, long, answer()] }, 400)
  expect(error.code).toBe('unknown_mcp_server')
  expect(error.message.length).toBeLessThan(1_000)
})

test('a denied call needs no server: the model gets the reason', async () => {
  const fleet = await open()
  const denied = answer({ approve: false, reason: 'not today' })
  const reply = await fleet.create({ input: [question, asked, denied] })
  expect(kinds(reply)).toEqual(['message'])
  expect(toolTexts(fleet.asked()[0])).toEqual(['Error: The user denied this call: not today'])
})

test('an approved call of a tool that its server no longer offers is reported as failed and kept in the history', async () => {
  const fleet = await open()
  const tools = [mcp(await serve('other'))]
  const reply = await fleet.create({ input, tools })
  expect(kinds(reply)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  expect(reply.output[1]).toMatchObject({
    status: 'failed',
    server_label: 'echoes',
    name: 'echo',
    arguments: '{"text":"hi"}',
    approval_request_id: 'mcpr_1',
    error: { message: 'This tool is no longer available.' },
  })
  expect(toolTexts(fleet.asked()[0])).toEqual(['Error: This tool is no longer available.'])
  const { types } = await fleet.stream({ input, tools })
  expect(types).toContain('response.mcp_call.failed')
  await fleet.create({ input: 'and then?', tools, previous_response_id: reply.id })
  expect(toolTexts(fleet.asked().at(-1))).toEqual(['This tool is no longer available.'])
})

test('an approved call beyond the limit of calls is reported as failed', async () => {
  const fleet = await open()
  const server = await serve('echo')
  const both = [
    question,
    asked,
    { ...asked, id: 'mcpr_2' },
    answer(),
    answer({ approval_request_id: 'mcpr_2' }),
  ]
  const reply = await fleet.create({ input: both, tools: [mcp(server)], max_tool_calls: 1 })
  const runs = reply.output.filter(({ type }: ResponseJson) => type === 'mcp_call')
  expect(runs.map(({ status }: ResponseJson) => status)).toEqual(['completed', 'failed'])
  expect(server.ran).toEqual(['echo'])
})

test('an approval in the history is not run again', async () => {
  const fleet = await open()
  const server = await serve('echo')
  const tools = [mcp(server)]
  const first = await fleet.create({ input, tools, store: false })
  expect(server.ran).toEqual(['echo'])
  const next = { role: 'user', content: 'and then?' }
  await fleet.create({ input: [...input, ...first.output, next], tools, store: false })
  expect(server.ran).toEqual(['echo'])
  expect(toolTexts(fleet.asked().at(-1))).toEqual(['you said hi'])

  const denied = [question, asked, answer({ approve: false })]
  const refused = await fleet.create({ input: denied, tools, store: false })
  fleet.workers[0].script(CHAT, chatAnswer('done'))
  // Also without its server, as no call is run.
  await fleet.create({ input: [...denied, ...refused.output, next], store: false })
  expect(toolTexts(fleet.asked().at(-1))).toEqual(['The user did not allow this call'])
})
