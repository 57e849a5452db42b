/** Tool servers with undocumented behaviour: what the model and the client get. */
import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { type RawMessage, sendResult, startRawServer } from '../../support/mcp/raw-server.ts'
import { startToolServer, type ToolServer } from '../../support/mcp/tool-server.ts'
import { CHAT, chatAnswer, openResponses, type ResponseJson } from './responses-fleet.ts'

const LOOPBACK = { mcp: { clientServers: { allowsPrivate: true } } }
const mcp = (url: string) => ({
  type: 'mcp',
  server_label: 'odd',
  server_url: url,
  require_approval: 'never',
})
const callOf = (name: string) => chatAnswer({ tool_calls: [{ id: 'c1', name, arguments: '{}' }] })

/** One turn that calls the tool `t` once. @returns the call, the request bodies, and the response */
async function turnWith(url: string) {
  const { create, workers, asked } = await openResponses(undefined, { plugins: LOOPBACK })
  const turn = async () => {
    workers[0].once(CHAT, callOf('t'))
    workers[0].once(CHAT, chatAnswer('done'))
    const reply = await create({ input: 'go', tools: [mcp(url)] })
    return { call: reply.output.find(({ type }: ResponseJson) => type === 'mcp_call'), reply }
  }
  return { turn, asked }
}

async function serve(
  answer: (message: RawMessage, response: ServerResponse) => void,
  tools: readonly object[] = [{ name: 't', inputSchema: { type: 'object', properties: {} } }],
) {
  const server = await startRawServer((message, response) => {
    if (message.method === 'tools/list') sendResult(response, message, { tools })
    else answer(message, response)
  })
  onTestFinished(() => server.close())
  return server
}

test.each([400, 404])('a session that the server rejects with %i is reopened', async (status) => {
  const seen = new Set<string>()
  let lost = new Set<string>()
  let refusals = 0
  const server: ToolServer = await startToolServer(
    { t: () => 'ran' },
    {
      intercept: (request, response) => {
        const id = request.headers['mcp-session-id'] as string | undefined
        if (id !== undefined) seen.add(id)
        if (id === undefined || !lost.has(id)) return false
        refusals += 1
        request.resume()
        const error = { code: -32_000, message: 'Bad Request: No valid session ID provided' }
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
        return true
      },
    },
  )
  onTestFinished(() => server.close())
  const { turn } = await turnWith(server.url)
  expect((await turn()).call).toMatchObject({ status: 'completed', output: 'ran' })
  lost = new Set(seen)
  const statuses: string[] = []
  for (let count = 0; count < 3; count += 1) statuses.push((await turn()).call?.status)
  expect(refusals).toBeGreaterThan(0)
  expect(statuses.slice(1)).toEqual(['completed', 'completed'])
})

test.each([400, 422, 500])(
  'the message of an error in a response with status %i reaches the model',
  async (status) => {
    const server = await serve((message, response) => {
      const error = { code: -32_602, message: 'date must be ISO 8601', data: { field: 'date' } }
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }))
    })
    const { turn, asked } = await turnWith(server.url)
    const { call } = await turn()
    expect(call).toMatchObject({ status: 'failed', error: expect.anything() })
    expect(JSON.stringify(call.error)).toContain('ISO 8601')
    expect(JSON.stringify(asked()[1].messages.at(-1))).toContain('ISO 8601')
  },
)

test.each<[string, unknown]>([
  ['without properties', { type: 'object' }],
  ['with null properties', { type: 'object', properties: null }],
  ['without members', {}],
  ['with a $schema only', { $schema: 'https://json-schema.org/draft/2020-12/schema' }],
])('a tool with a schema %s is offered with properties', async (_what, inputSchema) => {
  const server = await serve(
    (message, response) => sendResult(response, message, { content: [] }),
    [{ name: 't', inputSchema }],
  )
  const { turn, asked } = await turnWith(server.url)
  await turn()
  expect(asked()[0].tools[0].function.parameters).toMatchObject({ type: 'object', properties: {} })
})

test.each<[string, object[], RegExp]>([
  ['an image', [{ type: 'image', data: 'Q'.repeat(400_000), mimeType: 'image/png' }], /image/],
  [
    'text and an image',
    [
      { type: 'text', text: 'shot' },
      { type: 'image', data: 'Q'.repeat(400_000), mimeType: 'image/png' },
    ],
    /shot/,
  ],
  ['sound', [{ type: 'audio', data: 'Q'.repeat(400_000), mimeType: 'audio/wav' }], /audio/],
  [
    'a resource of bytes',
    [{ type: 'resource', resource: { uri: 'a://b', mimeType: 'image/png', blob: 'Q'.repeat(400_000) } }],
    /a:\/\/b/,
  ],
])('bytes of a result do not reach the model as text: %s', async (_what, content, said) => {
  const server = await serve((message, response) => sendResult(response, message, { content }))
  const { turn, asked } = await turnWith(server.url)
  expect((await turn()).call.status).toBe('completed')
  const results = asked()[1].messages.filter(({ role }: ResponseJson) => role === 'tool')
  expect(JSON.stringify(results).length).toBeLessThan(5_000)
  expect(JSON.stringify(results)).toMatch(said)
})

test.each([
  ['an object', { rows: [1] }, '{"rows":[1]}'],
  ['a list', [1, 'a'], '[1,"a"]'],
  ['a text', 'heron', '"heron"'],
  ['false', false, 'false'],
  ['null', null, 'null'],
])('structured content without text reaches the model: %s', async (_what, structuredContent, shown) => {
  const server = await serve((message, response) =>
    sendResult(response, message, { content: [], structuredContent }),
  )
  const { turn, asked } = await turnWith(server.url)
  expect((await turn()).call).toMatchObject({ status: 'completed', output: shown })
  expect(asked()[1].messages.at(-1)).toMatchObject({ role: 'tool', content: shown })
})
