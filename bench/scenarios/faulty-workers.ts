/** Policies compared on a fleet of four workers of which three fail: a wrong key, an HTML page, and no tokens. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { discoveryResponses } from '../support/discovery-responses.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { ADMIN_HEADERS, startGateway } from '../support/gateway.ts'

const REQUESTS_PER_SECOND = 10
const SECONDS = 30
/** Requests of the first seconds are reported apart: the gateway has not seen the faults yet. */
const SETTLE_MS = 3_000
/** A client gives up after this time. */
const CLIENT_LIMIT_MS = 10_000
/** A response that takes longer waited for the worker that hangs. */
const SLOW_MS = 1_000
/** First-byte limits of the gateway. */
const LIMIT_MS = 2_000
const GENERATION_MS = 100

const POLICIES = [
  'round_robin',
  'random',
  'least_load',
  'power_of_two',
  'cache_aware',
  'prefix_hash',
  'consistent_hashing',
  'manual',
  'bucket',
]

type Answer = (response: ServerResponse, isStream: boolean) => void

const CHUNK = '{"choices":[{"index":0,"delta":{"content":"one"},"finish_reason":"stop"}]}'
const WHOLE =
  '{"choices":[{"index":0,"message":{"role":"assistant","content":"one"},"finish_reason":"stop"}]}'

const ANSWERS: readonly Answer[] = [
  (response, isStream) => {
    setTimeout(() => {
      response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
      response.end(isStream ? `data: ${CHUNK}\n\ndata: [DONE]\n\n` : WHOLE)
    }, GENERATION_MS)
  },
  (response) => {
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"wrong key"}}')
  },
  (response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>sign in</html>')
  },
  // As engines that send the head at once: the health checks pass, and no token follows.
  (response, isStream) => {
    if (isStream) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  },
]

const DISCOVERY = discoveryResponses('bench')

async function startWorker(answer: Answer): Promise<Server> {
  const server = createServer((request, response) => void serve(request, response, answer))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function serve(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  if (request.method === 'POST') return answer(response, body.includes('"stream":true'))
  const found = DISCOVERY[request.url ?? '']
  response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(found ?? {}))
}

interface Outcome {
  readonly atMs: number
  readonly isGood: boolean
  readonly durationMs: number
}

async function ask(port: number, nth: number, startMs: number): Promise<Outcome> {
  const sentAtMs = performance.now()
  const isStream = nth % 2 === 0
  const content = `${'word '.repeat(nth % 50)}${nth % 40}`
  const body = { model: 'bench', stream: isStream, messages: [{ role: 'user', content }] }
  const headers = { ...ADMIN_HEADERS, 'x-weir-routing-key': String(nth) }
  const url = `http://127.0.0.1:${port}/v1/chat/completions`
  const isGood = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    .then(async (response) => response.ok && (await response.text()).includes('one'))
    .catch(() => false)
  return { atMs: sentAtMs - startMs, isGood, durationMs: performance.now() - sentAtMs }
}

/** Open loop: requests start on time, whatever becomes of the earlier ones. */
async function load(port: number): Promise<Outcome[]> {
  const startMs = performance.now()
  const running: Promise<Outcome>[] = []
  for (let nth = 0; nth < SECONDS * REQUESTS_PER_SECOND; nth++) {
    await sleep(Math.max(0, startMs + (nth * 1000) / REQUESTS_PER_SECOND - performance.now()))
    const limit = sleep(CLIENT_LIMIT_MS, {
      atMs: performance.now() - startMs,
      isGood: false,
      durationMs: CLIENT_LIMIT_MS,
    })
    running.push(Promise.race([ask(port, nth, startMs), limit]))
  }
  return Promise.all(running)
}

async function runOnce(policy: string): Promise<Outcome[]> {
  const workers = await Promise.all(ANSWERS.map(startWorker))
  const ports = workers.map((worker) => (worker.address() as AddressInfo).port)
  const specs = ports.map((port) => ({
    url: `http://127.0.0.1:${port}`,
    api_key: 'key',
    runtime_type: 'vllm',
  }))
  const gateway = await startGateway({
    workerPorts: ports,
    kernel: { policy, upstream: { headMs: LIMIT_MS, firstTokenMs: LIMIT_MS } },
    plugins: { workers: { workers: specs } },
  })
  try {
    return await load(gateway.port)
  } finally {
    await gateway.stop()
    for (const worker of workers) {
      worker.closeAllConnections()
      worker.close()
    }
  }
}

const percent = (outcomes: readonly Outcome[], counts: (outcome: Outcome) => boolean): number =>
  (100 * outcomes.filter(counts).length) / Math.max(1, outcomes.length)

function figures(name: string, outcomes: readonly Outcome[], target?: number): Figure[] {
  const early = outcomes.filter(({ atMs }) => atMs < SETTLE_MS)
  const later = outcomes.filter(({ atMs }) => atMs >= SETTLE_MS)
  const failed = ({ isGood }: Outcome) => !isGood
  return [
    { name: `${name}, failed in the first 3 s`, unit: '%', values: [percent(early, failed)] },
    { name: `${name}, failed after`, unit: '%', values: [percent(later, failed)], target },
    {
      name: `${name}, slower than ${SLOW_MS / 1000} s after`,
      unit: '%',
      values: [percent(later, ({ durationMs }) => durationMs > SLOW_MS)],
    },
  ]
}

async function run(options: RunOptions): Promise<Figure[]> {
  const policies = options.policies.length > 0 ? options.policies : POLICIES
  const all: Figure[] = []
  for (const policy of policies) {
    options.progress(policy)
    all.push(...figures(policy, await runOnce(policy), 2))
  }
  return all
}

export const faultyWorkers: Scenario = {
  name: 'faulty-workers',
  question: 'which share of requests fails under each policy if three of four workers are faulty?',
  run,
}
