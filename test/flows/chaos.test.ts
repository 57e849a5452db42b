/** 1,000 concurrent requests on two data threads while workers fail in every way: all end, nothing leaks. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type BuiltGateway,
  type BuiltSim,
  startBuiltGateway,
  startSim,
  stopCommands,
  sumOf,
  until,
} from '../support/built-command.ts'
import { COMPLETE, type Ending, endingOfStream } from '../support/request-ending.ts'
import { type ScriptedWorker, startScriptedWorker, streamAnswer } from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'

const REQUESTS = 1_000
const REQUEST_LIMIT_MS = 10_000
/** Shorter than the interval of the heartbeats of a simulated engine. */
const IDLE_LIMIT_MS = 4_000

interface Kind {
  readonly path: string
  readonly body: object
  readonly isStream: boolean
}

const chat = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }
const kinds: readonly Kind[] = [
  { path: '/v1/chat/completions', body: chat, isStream: false },
  { path: '/v1/chat/completions', body: { ...chat, stream: true }, isStream: true },
  { path: '/v1/embeddings', body: { model: 'demo', input: ['one', 'two'] }, isStream: false },
  { path: '/generate', body: { model: 'demo', text: 'Hello' }, isStream: false },
  { path: '/generate', body: { model: 'demo', text: 'Hello', stream: true }, isStream: true },
  { path: '/rerank', body: { model: 'demo', query: 'q', documents: ['a', 'b'] }, isStream: false },
]

/** A fault and the ending that it must lead to. */
const faults: readonly { readonly fault: string | null; readonly ending: (kind: Kind) => Ending }[] = [
  { fault: null, ending: () => COMPLETE },
  { fault: null, ending: () => COMPLETE },
  { fault: null, ending: () => COMPLETE },
  { fault: 'status=500', ending: () => '500 simulated_fault' },
  { fault: 'status=503', ending: () => '503 simulated_fault' },
  { fault: 'status=429,retry-after=1', ending: () => '429 simulated_fault' },
  { fault: 'drop', ending: () => '502 call_upstream_request_error' },
  {
    fault: 'drop-after=3',
    ending: ({ isStream }) =>
      isStream ? '200, cut behind error event read_response_body_failed' : '502 call_upstream_request_error',
  },
  { fault: 'hang', ending: () => '504 call_upstream_timeout' },
  {
    fault: 'hang-after=2',
    ending: ({ isStream }) =>
      isStream ? '200, cut behind error event stream_idle_timeout' : '504 call_upstream_timeout',
  },
  { fault: 'delay=300', ending: () => COMPLETE },
  { fault: 'drip=5', ending: () => COMPLETE },
  {
    fault: 'malformed',
    ending: ({ path, isStream }) => {
      if (isStream) return '200, whole, one event that is not JSON'
      // The only one of these routes that parses the response.
      return path === '/rerank' ? '500 rerank_response_build_failed' : '200, whole, not JSON'
    },
  },
]

let sims: readonly BuiltSim[]
let torn: ScriptedWorker
let gateway: BuiltGateway

beforeAll(async () => {
  const flags = ['--model', 'demo', '--tokens', '16', '--ttft-ms', '5', '--itl-ms', '1']
  sims = await Promise.all(Array.from({ length: 4 }, () => startSim(...flags)))
  torn = await startScriptedWorker({ models: ['torn'] })
  const head = { headers: { 'content-type': 'application/json' } }
  torn.script('POST /v1/chat/completions', streamAnswer(['{"choices":', { drop: 'close' }], head))
  gateway = await startBuiltGateway({
    kernel: {
      log: { level: 'error' },
      // Each fault on its own: no retries, no breaker, no outliers.
      retry: { maxAttempts: 1 },
      breaker: { enabled: false, maxOutlierShare: 0 },
      // Each thread deals its requests out evenly, whatever their prompts and durations are.
      policy: 'round_robin',
      upstream: { requestMs: REQUEST_LIMIT_MS, idleMs: IDLE_LIMIT_MS, keepAliveMs: 1_000 },
    },
    // Longer than the limit above, also on a busy machine.
    plugins: { chat: { streamOpensAfterMs: 60_000 } },
    workers: [
      ...sims.map(({ url }) => ({ url, runtime_type: 'sglang', models: [{ id: 'demo' }] })),
      { url: torn.url, runtime_type: 'sglang', models: [{ id: 'torn' }] },
    ],
  })
})

afterAll(async () => {
  await stopCommands()
  await torn?.close()
})

interface Sent {
  readonly label: string
  readonly expected: Ending
  readonly stream: SseStream
}

function send(number: number): Sent {
  if (number % 50 === 49) {
    const stream = openSse(`${gateway.url}/v1/chat/completions`, { body: { ...chat, model: 'torn' } })
    return { label: 'torn', expected: '200, cut', stream }
  }
  const kind = kinds[number % kinds.length]
  const { fault, ending } = faults[Math.floor(number / kinds.length) % faults.length]
  const body = fault === null ? kind.body : { ...kind.body, sim_fault: fault }
  const stream = openSse(gateway.url + kind.path, { body })
  const label = `${kind.path}${kind.isStream ? ' streamed' : ''} ${fault ?? 'no fault'}`
  if (number % 11 !== 5) return { label, expected: ending(kind), stream }
  // Some disconnect before the response, some during it, some before the request is sent.
  if (number % 2 === 0) setTimeout(() => stream.close(), number % 40)
  else stream.receive(2).then(() => stream.close(), stream.close.bind(stream))
  return { label, expected: 'left', stream }
}

const endingOf = ({ stream, expected }: Sent): Ending =>
  expected === 'left' ? 'left' : endingOfStream(stream)

/** Unexpected endings with their counts. */
function tally(sent: readonly Sent[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of sent) {
    const ending = endingOf(one)
    if (ending === one.expected) continue
    const line = `${one.label}: ${ending}, not ${one.expected}`
    counts[line] = (counts[line] ?? 0) + 1
  }
  return counts
}

test('each of 1,000 concurrent requests ends complete or with its documented error, and nothing leaks', async () => {
  // Warm-up: every route once, so that the baseline includes what a warm process holds.
  await Promise.all(
    kinds.map(({ path, body }) => gateway.send('POST', path, body).then((response) => response.text())),
  )
  const openBefore = gateway.command.openFiles()

  const sent = Array.from({ length: REQUESTS }, (_, number) => send(number))
  await Promise.all(sent.map(({ stream }) => stream.done))
  expect(tally(sent)).toEqual({})
  expect(new Set(sent.map(endingOf)).size).toBeGreaterThanOrEqual(11)

  await expectNoLeak(openBefore)
})

async function expectNoLeak(openBefore: number): Promise<void> {
  await until(async () => Object.values(await gateway.loads()).every((load) => load === 0))
  for (const gauge of [
    'weir_http_connections_active',
    'weir_worker_requests_active',
    'weir_worker_connections_active',
  ])
    await expect.poll(async () => sumOf(await gateway.metrics(), gauge), { message: gauge }).toBe(0)
  for (const { url } of sims) {
    const stats = async () =>
      (await (await fetch(`${url}/sim/stats`)).json()) as { running: number; total: number }
    await expect.poll(async () => (await stats()).running).toBe(0)
    // Each of four workers was picked for a quarter; some clients disconnect before their request is sent.
    expect((await stats()).total).toBeGreaterThan(REQUESTS / 8)
  }
  await until(
    () => gateway.command.openFiles() <= openBefore + 10,
    () => `${gateway.command.openFiles()} open files, ${openBefore} before`,
  )
  expect(gateway.command.hasEnded).toBe(false)
  expect((await gateway.send('POST', '/v1/chat/completions', chat)).status).toBe(200)
}
