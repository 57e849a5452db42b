/**
 * What clients of every format receive from workers of every kind, byte for byte, against a recording. After an intended
 * change, `RECORD=1 npx vitest run test/api/client-bytes.test.ts` writes the recording again.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { chatAnswer } from '../support/chat-script.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { messageSays } from '../support/messages-script.ts'
import { nativeAnswer, text } from '../support/responses-script.ts'
import { jsonAnswer, type ScriptedWorker, sseAnswer } from '../support/scripted-worker.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'
import { FRONTS, LANES, openLane } from './recorded-fleet.ts'
import { newDirectory, RESPONSES } from './responses/responses-fleet.ts'

const RECORDING = new URL('../fixtures/streams/client-bytes.json.br', import.meta.url)
type Recording = Record<string, string>
type Json = Record<string, unknown>

/** Responses by lane, client, answer and form. */
function read(): Recording {
  return existsSync(RECORDING) ? JSON.parse(brotliDecompressSync(readFileSync(RECORDING)).toString()) : {}
}

const recorded = read()

const OWN_ID = /\b(?:[a-z]+[_-])+[0-9a-zA-Z]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g

/** Without the values that differ from run to run: ids are numbered in the order of their first use. */
function normalized(bytes: string): string {
  const ids = new Map<string, string>()
  const number = (id: string) => {
    if (!ids.has(id)) ids.set(id, `id-${ids.size}`)
    return ids.get(id) as string
  }
  return bytes
    .replace(/"(created|created_at|completed_at|e2e_latency)":[\d.]+/g, '"$1":0')
    .replace(/"encrypted_content":"[^"]{40,}"/g, '"encrypted_content":"sealed"')
    .replace(/127\.0\.0\.1:\d+/g, 'HOST')
    .replace(OWN_ID, number)
}

function check(lane: string, cases: Recording): void {
  const others = Object.entries(read()).filter(([key]) => !key.startsWith(`${lane} `))
  if (process.env.RECORD !== undefined) {
    const all = JSON.stringify({ ...Object.fromEntries(others), ...cases })
    const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS }
    writeFileSync(RECORDING, brotliCompressSync(all, { params }))
    return
  }
  expect(Object.keys(cases)).toHaveLength(Object.keys(recorded).length - others.length)
  for (const [key, bytes] of Object.entries(cases)) expect.soft(bytes, key).toBe(recorded[key])
}

const CALLS = [
  { id: 'call_1', name: 'echo', arguments: '{"a":1}' },
  { id: 'call_2', name: 'echo', arguments: '' },
  { id: 'call_3', name: 'look', arguments: '{"q":"x"}' },
]
type Called = (typeof CALLS)[number]
const native = ({ id, name, arguments: args }: Called) => ({
  type: 'function_call',
  id: `fc_${id}`,
  status: 'completed',
  call_id: id,
  name,
  arguments: args,
})

/** One answer with calls, in the format of each worker. Messages workers make one call. */
const ROUNDS = {
  chat: (calls: readonly Called[]) =>
    chatAnswer({ reasoning_content: 'think first', content: 'one moment', tool_calls: calls }),
  responses: (calls: readonly Called[]) =>
    nativeAnswer({ output: [text('one moment'), ...calls.map(native)] }),
  messages: ([call]: readonly Called[]) =>
    messageSays({ text: 'one moment', call: { ...call, input: { a: 1 } } }),
}
const DONE = {
  chat: chatAnswer({ content: '\n\nall done', reasoning_content: 'so' }),
  responses: nativeAnswer('all done'),
  messages: messageSays({ text: 'all done' }),
}
const TOOLS = {
  messages: (url: string) => ({
    mcp_servers: [{ type: 'url', name: 'echoes', url }],
    tools: [
      { name: 'look', input_schema: { type: 'object' } },
      { type: 'mcp_toolset', mcp_server_name: 'echoes' },
    ],
  }),
  responses: (url: string, approval = 'never') => ({
    tools: [
      { type: 'function', name: 'look', parameters: { type: 'object' } },
      { type: 'mcp', server_label: 'echoes', server_url: url, require_approval: approval },
    ],
  }),
}
const MCP = { 'x-weir-mcp': 'enabled' }

interface Client {
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  readonly gateway: { readonly url: string }
}

/** Sends a request whole and streamed; of a stored response also what is read and replayed later. */
async function bytesOf(client: Client, key: string, path: string, body: Json, before: () => unknown) {
  const cases: Recording = {}
  for (const stream of [false, true]) {
    await before()
    const reply = await client.post(path, { model: 'test-model', ...body, stream }, MCP)
    // An error in a stream ends the connection.
    const bytes = await reply.text().catch((error: Error) => `${error.name}`)
    const form = stream ? 'streamed' : 'whole'
    cases[`${key} ${form}`] = `${reply.status} ${normalized(bytes)}`
    const id = /"id":"(resp_\w{16,})"/.exec(bytes)?.[1]
    if (path !== RESPONSES || id === undefined) continue
    for (const query of ['', '?stream=true', '?stream=true&starting_after=3']) {
      const later = await fetch(`${client.gateway.url}${RESPONSES}/${id}${query}`)
      cases[`${key} ${form} stored${query}`] = `${later.status} ${normalized(await later.text())}`
    }
  }
  return cases
}

const INCLUDE = { include: ['reasoning.encrypted_content', 'message.output_text.logprobs'] }

test.each(['chat', 'responses', 'messages'] as const)('clients of a %s worker', async (lane) => {
  const { route, events, reply } = LANES[lane]
  const fleet = await openLane(LANES[lane])
  const worker: ScriptedWorker = fleet.workers[0]
  const server = await startToolServer({ echo: () => 'ran' })
  onTestFinished(() => server.close())
  const frames = events.map((event) => JSON.stringify(event))
  const error = { type: 'overloaded_error', message: 'too busy' }
  const failed = lane === 'chat' ? { error } : { type: 'error', error }
  const streamed = (steps: readonly string[]) => () =>
    worker.script(route, (request) =>
      (request.json() as Json).stream === true ? sseAnswer(steps) : jsonAnswer(reply),
    )
  const round = (calls: readonly Called[]) => () =>
    worker.script(route, DONE[lane]).once(route, ROUNDS[lane](calls))
  const answers: Record<string, () => unknown> = {
    rich: streamed(frames),
    cut: streamed(frames.slice(0, 6)),
    failed: streamed([...frames.slice(0, 6), JSON.stringify(failed)]),
    calls: () => worker.script(route, ROUNDS[lane](CALLS)),
    'spaces before a call': () =>
      worker.script(route, lane === 'chat' ? chatAnswer({ content: ' \n', tool_calls: CALLS }) : DONE[lane]),
    empty: () => worker.script(route, lane === 'chat' ? chatAnswer({ content: '' }) : DONE[lane]),
    long: () =>
      worker.script(
        route,
        lane === 'chat' ? chatAnswer({ tool_calls: CALLS, finish: 'length' }) : DONE[lane],
      ),
  }
  const cases: Recording = {}
  const add = async (key: string, path: string, body: Json, before: () => unknown) =>
    Object.assign(cases, await bytesOf(fleet, `${lane} ${key}`, path, body, before))
  for (const [front, { path, body }] of Object.entries(FRONTS)) {
    const more = front === 'responses' ? INCLUDE : {}
    for (const [name, before] of Object.entries(answers))
      await add(`${front} ${name}`, path, { ...body, ...more }, before)
  }
  for (const front of ['messages', 'responses'] as const) {
    const { path, body } = FRONTS[front]
    const withTools = { ...body, ...TOOLS[front](server.url) }
    for (const [name, before] of Object.entries(answers))
      await add(`${front} tools ${name}`, path, withTools, before)
    await add(`${front} tools round`, path, withTools, round(CALLS.slice(0, 2)))
    await add(`${front} tools handed over`, path, withTools, round(CALLS))
  }
  const { path, body } = FRONTS.responses
  const guarded = { ...body, ...TOOLS.responses(server.url, 'always') }
  await add('responses tools approval', path, guarded, round(CALLS))
  await add(
    'responses tools limit',
    path,
    { ...body, ...TOOLS.responses(server.url), max_tool_calls: 1 },
    round(CALLS.slice(0, 2)),
  )
  check(lane, cases)
})

test('clients of a gRPC engine', async () => {
  const fleet = await openGrpcMessages({
    plugins: {
      storage: { dir: newDirectory() },
      history: {},
      responses: {},
      mcp: { clientServers: { allowsPrivate: true } },
    },
  })
  const server = await startToolServer({ echo: () => 'ran' })
  onTestFinished(() => server.close())
  const call = (name: string, args: object) =>
    `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`
  const calls = `<think>hm</think>Hello ${call('look', { q: 'x' })}\n${call('look', { q: 'y' })}`
  const answers = {
    text: () => fleet.engineAnswers('Hello there'),
    calls: () => fleet.engineAnswers(calls),
    long: () => fleet.engineAnswers(calls.slice(0, -30), { finishReason: 'length' }),
    failed: () => fleet.engineAnswers('Hello there', {}, [{ status: 13, message: 'broken' } as never]),
    spaces: () => fleet.engineAnswers(`  \n${call('look', {})}`),
  }
  const cases: Recording = {}
  const add = async (key: string, path: string, body: Json, before: () => unknown) =>
    Object.assign(cases, await bytesOf(fleet, `grpc ${key}`, path, body, before))
  for (const [front, { path, body }] of Object.entries(FRONTS))
    for (const [name, before] of Object.entries(answers)) await add(`${front} ${name}`, path, body, before)
  await add('chat two choices', FRONTS.chat.path, { ...FRONTS.chat.body, n: 2 }, answers.calls)
  for (const front of ['messages', 'responses'] as const)
    for (const [name, before] of Object.entries(answers))
      await add(
        `${front} tools ${name}`,
        FRONTS[front].path,
        { ...FRONTS[front].body, ...TOOLS[front](server.url) },
        before,
      )
  check('grpc', cases)
})
