/** Many concurrent turns with tools through the built gateway: all complete, and nothing leaks. */
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  stopCommands,
  sumOf,
} from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { sendResult, startRawServer } from '../support/mcp/raw-server.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { type RecordedRequest, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'
import type { Answer } from '../support/worker-answer.ts'

const TURNS = 250
const CALLS = 3
const model = 'test-model'

let worker: ScriptedWorker
const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  await stopCommands()
  for (const end of ends.splice(0)) await end()
  await worker.close()
})

type Body = Readonly<Record<string, unknown>> & { readonly messages: readonly { readonly role: string }[] }
type Script = (request: RecordedRequest) => Answer

const calls = Array.from({ length: CALLS }, (_, n) => ({
  id: `call_${n}`,
  name: 'look_up',
  arguments: `{"n":${n}}`,
}))

/** Starts a raw tool server that responds with JSON, and one of the MCP SDK that responds with events. */
async function startServers() {
  let plainCalls = 0
  const plain = await startRawServer((message, response) => {
    if (message.method === 'tools/list')
      return sendResult(response, message, { tools: [{ name: 'look_up' }] })
    plainCalls++
    sendResult(response, message, { content: [{ type: 'text', text: 'found' }] })
  })
  const library = await startToolServer({ look_up: () => 'found' })
  ends.push(
    () => plain.close(),
    () => library.close(),
  )
  return { plain, library, ran: () => [plainCalls, library.ran.length] }
}

async function turn(gateway: BuiltGateway, server: string, stream: boolean): Promise<string> {
  const tools = [{ type: 'mcp', server_label: server, require_approval: 'never' }]
  const reply = await gateway.send('POST', '/v1/responses', { model, input: 'look it up', tools, stream })
  const text = await reply.text()
  const events = stream
    ? text.split('\n\n').filter((event) => event.startsWith('event: response.completed'))
    : []
  const response = stream
    ? JSON.parse(events[0].slice(events[0].indexOf('data: ') + 6)).response
    : JSON.parse(text)
  return `${reply.status} ${response.output.map(({ type, status = '' }: { type: string; status?: string }) => `${type} ${status}`.trim())}`
}

const EXPECTED = `200 mcp_list_tools,${'mcp_call completed,'.repeat(CALLS)}message completed`

test('250 concurrent turns with three calls each leave no connection, descriptor, permit or request behind', async () => {
  worker = await startScriptedWorker({ models: [model] })
  const [asks, answers] = [chatAnswer({ tool_calls: calls }), chatAnswer('It is there.')] as Script[]
  worker.script(CHAT, (request) => {
    const { messages } = request.json() as Body
    return messages.some(({ role }) => role === 'tool') ? answers(request) : asks(request)
  })
  const { plain, library, ran } = await startServers()
  const gateway = await startBuiltGateway({
    kernel: { threads: 1, upstream: { keepAliveMs: 1_000 } },
    plugins: {
      generations: {},
      storage: { dir: makeFolder() },
      history: {},
      mcp: {
        servers: [
          { label: 'plain', url: plain.url },
          { label: 'library', url: library.url },
        ],
        // Exactly as many as a round needs: one leaked permit rejects a call of the second round.
        limits: { idleMs: 5_000, maxCallsPerTenant: TURNS * CALLS },
      },
      metrics: {},
      responses: {},
    },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
  })
  expect(await turn(gateway, 'plain', true)).toBe(EXPECTED)
  expect(await turn(gateway, 'library', false)).toBe(EXPECTED)

  const isIdle = async () => {
    const samples = await gateway.metrics()
    const open = sumOf(samples, 'weir_mcp_connections')
    return [open, await plain.connections(), sumOf(samples, 'weir_worker_requests_active')]
  }
  const settle = { interval: 250 }
  await expect.poll(isIdle, settle).toEqual([0, 0, 0])
  const before = gateway.command.openFiles()

  for (let round = 1; round <= 2; round++) {
    const turns = Array.from({ length: TURNS }, (_, n) =>
      turn(gateway, n % 2 === 0 ? 'plain' : 'library', n % 4 > 1),
    )
    expect(new Set(await Promise.all(turns))).toEqual(new Set([EXPECTED]))
    const half = (TURNS * CALLS * round) / 2 + CALLS
    expect(ran()).toEqual([half, half])
  }
  // Concurrent turns share one session with each server.
  expect(plain.received.filter((method) => method === 'initialize').length).toBeLessThanOrEqual(3)

  await expect.poll(isIdle, settle).toEqual([0, 0, 0])
  await expect.poll(() => gateway.command.openFiles(), settle).toBeLessThanOrEqual(before + 3)
  const after = await gateway.metrics()
  expect(sumOf(after, 'weir_background_work_active')).toBe(0)
  expect(sumOf(after, 'weir_http_inflight_requests')).toBe(0)
})
