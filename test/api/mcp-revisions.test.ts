/** Tool servers of both revisions of the protocol in turns of both client formats, over every kind of worker. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startStatelessServer } from '../support/mcp/stateless-server.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { TextWorkers, type WorkerKind } from '../support/text-workers.ts'
import { CHAT, chatAnswer, openResponses, type ResponseJson } from './responses/responses-fleet.ts'

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
})

afterAll(async () => {
  await gateway?.stop()
  await workers?.close()
})

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await endChildren()
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

const PROGRAM = fileURLToPath(new URL('../support/mcp/tool-process.ts', import.meta.url))

/** A tool server that can be killed. */
async function startProcess(revision: string) {
  const child = endsWithTest(
    spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, revision], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  await vi.waitFor(() => expect(lines).not.toEqual([]), { timeout: 30_000, interval: 20 })
  const kill = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { port: Number(lines[0]), hanging: () => lines.length - 1, kill }
}

/** One address for a server and its replacement. @returns the port, and a function that changes the server's */
async function startFront(port: number) {
  let target = port
  const front = createTcpServer((client) => {
    const server = connect(target, '127.0.0.1')
    const join = (from: Socket, to: Socket) =>
      from
        .on('error', () => {})
        .on('close', () => to.destroy())
        .pipe(to)
    join(client, server)
    join(server, client)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  ends.push(() => new Promise((resolve) => front.close(resolve)))
  const point = (next: number) => {
    target = next
  }
  return { port: (front.address() as AddressInfo).port, point }
}

test.each([
  ['2025-11-25', '2026-07-28'],
  ['2026-07-28', '2025-11-25'],
])(
  'a server of %s that is killed under concurrent turns, and replaced by %s, fails its running calls only',
  async (revision, next) => {
    const [killed, replacement] = await Promise.all([startProcess(revision), startProcess(next)])
    const front = await startFront(killed.port)
    const after = Promise.withResolvers<void>()
    let waiting = 0
    const { create, workers: fleet } = await openResponses(undefined, {
      plugins: { mcp: { clientServers: { allowsPrivate: true } } },
    })
    // Calls the tool that the user names, once; `late` calls after the kill.
    fleet[0].script(CHAT, async (request) => {
      const { messages } = request.json() as ResponseJson
      const isCalled = messages.at(-1).role === 'tool'
      const name = messages.find(({ role }: ResponseJson) => role === 'user').content
      if (name === 'late' && !isCalled) {
        waiting++
        await after.promise
      }
      const call = { id: 'c1', name: name === 'hang' ? 'hang' : 'look', arguments: '{"city":"Bern"}' }
      const answer = chatAnswer(isCalled ? 'done' : { tool_calls: [call] })
      return typeof answer === 'function' ? answer(request) : answer
    })
    const url = `http://127.0.0.1:${front.port}/mcp`
    const tools = [{ type: 'mcp', server_label: 'srv', server_url: url, require_approval: 'never' }]
    const run = (input: string) =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          const { output } = await create({ input, tools })
          const call = output.find(({ type }: ResponseJson) => type === 'mcp_call')
          return [call.status, call.output, output.at(-1).content?.[0].text]
        }),
      )
    const failed = Array(8).fill(['failed', '', 'done'])
    const completed = Array(8).fill(['completed', 'rain in Bern', 'done'])

    expect(await run('look')).toEqual(completed)
    const running = run('hang')
    const late = run('late')
    await vi.waitFor(() => expect([killed.hanging(), waiting]).toEqual([8, 8]), {
      timeout: 30_000,
      interval: 20,
    })
    front.point(replacement.port)
    await killed.kill()
    expect(await running).toEqual(failed)
    after.resolve()
    expect(await late).toEqual(completed)
    expect(await run('look')).toEqual(completed)
  },
  60_000,
)
