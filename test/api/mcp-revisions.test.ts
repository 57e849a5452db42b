/** Tool servers of both revisions of the protocol in turns of both client formats, over every kind of worker. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startStatelessServer } from '../support/mcp/stateless-server.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { TextWorkers, type WorkerKind } from '../support/text-workers.ts'

type Json = Record<string, unknown>

let workers: TextWorkers
let gateway: TestGateway

beforeAll(async () => {
  workers = await TextWorkers.start()
  gateway = await startGateway({
    plugins: {
      auth: {},
      chat: {},
      messages: {},
      grpc: {},
      parsers: { toolParser: 'qwen' },
      tokenizers: { load: [{ name: 'grpc', source: 'weir:sample' }] },
      responses: {},
      mcp: { clientServers: { allowsPrivate: true } },
      workers: { workers: workers.specs, health: { disable_health_check: true } },
    },
  })
  await vi.waitFor(
    async () => {
      const reply = await post('/v1/messages', {
        model: 'grpc',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'hi' }],
      })
      expect(reply.status).toBe(200)
    },
    { timeout: 60_000, interval: 20 },
  )
}, 90_000)

afterAll(async () => {
  await gateway?.stop()
  await workers?.close()
})

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

function post(path: string, body: Json): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** One turn of each client format. @returns the name and output of its calls */
const formats = {
  responses: async (model: string, url: string) => {
    const tools = [{ type: 'mcp', server_label: 'srv', server_url: url, require_approval: 'never' }]
    const reply = await post('/v1/responses', { model, input: 'go', tools, store: false })
    const { status, output } = (await reply.json()) as { status: string; output: Json[] }
    expect(status).toBe('completed')
    return output
      .filter(({ type, server_label }) => type === 'mcp_call' && server_label === 'srv')
      .map(({ output }) => output)
  },
  messages: async (model: string, url: string) => {
    const reply = await post('/v1/messages', {
      model,
      max_tokens: 900,
      messages: [{ role: 'user', content: 'go' }],
      mcp_servers: [{ type: 'url', name: 'srv', url }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'srv' }],
    })
    const { content } = (await reply.json()) as { content: Json[] }
    expect(reply.status).toBe(200)
    const own = content.filter(
      ({ type, tool_use_id }) => type === 'mcp_tool_result' && tool_use_id !== 'mcptoolu_1',
    )
    return own.map((block) => (block.content as Json[])[0].text)
  },
}

const CALL = { reasoning: [], text: [], arguments: ['{"city":"Bern"}'] }
const ANSWER = { reasoning: [], text: ['done'], arguments: [] }

/** Runs the one call that the model makes. */
const look = ({ city }: Json) => {
  workers.said = ANSWER
  return `rain in ${city}`
}

const kinds: readonly WorkerKind[] = ['relayed', 'messages', 'responses', 'grpc']
/** Messages to a worker of that format are relayed, with their servers. */
const turns = kinds.flatMap((kind) =>
  Object.keys(formats)
    .filter((format) => kind !== 'messages' || format !== 'messages')
    .map((format) => [kind, format as keyof typeof formats] as const),
)
const servers = {
  '2025-11-25': () => startToolServer({ look }),
  '2026-07-28': () => startStatelessServer({ look }),
}

describe.each(Object.entries(servers))('a tool server of %s', (_, start) => {
  test.each(turns)('over a worker of %s, for a client of %s', async (kind, format) => {
    const server = await start()
    ends.push(() => server.close())
    workers.said = CALL
    expect(await formats[format](kind, server.url)).toEqual(['rain in Bern'])
  })
})

test('a server that is replaced by one of the other revision, and back, fails no turn', async () => {
  const old = await startToolServer({ look })
  let looks = 0
  const modern = await startStatelessServer({
    look: (input) => {
      looks++
      return look(input)
    },
  })
  let active: typeof old | typeof modern = old
  const front = createServer((request, response) => active.handle(request, response))
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  ends.push(
    () => new Promise((resolve) => front.close(resolve).closeAllConnections()),
    () => old.close(),
    () => modern.close(),
  )
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`
  for (const next of [old, modern, old, modern]) {
    active = next
    for (const format of Object.values(formats)) {
      workers.said = CALL
      expect(await format('relayed', url)).toEqual(['rain in Bern'])
    }
  }
  expect([old.ran.length, looks]).toEqual([4, 4])
})
