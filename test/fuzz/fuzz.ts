/** Mutated request bodies, and mutated answers and reports of a worker, against a real gateway with one data thread. */
import { createServer, type Server } from 'node:net'
import { performance } from 'node:perf_hooks'
import { type BuiltGateway, startBuiltGateway } from '../support/built-command.ts'
import { HttpLane } from './http-lane.ts'
import { type Draw, mutate, seeded } from './mutate.ts'

export interface FuzzReport {
  readonly count: number
  readonly seconds: number
  /** How many ended with each status; 0: closed without a reply, -1: nothing came, -2: no single reply. */
  readonly endings: Record<string, number>
  /** Of /liveness meanwhile, milliseconds. */
  readonly livenessP99Ms: number
  /** What the gateway logged as an error of its own. */
  readonly errors: readonly string[]
  /** The gateway serves as before. */
  readonly isWell: boolean
}

/** The gateway lives, has no error of its own, and nobody waited in vain or got another's bytes; 500 would be a fault of its own. */
export function isGood({ endings, errors, isWell }: FuzzReport): boolean {
  return isWell && errors.length === 0 && ['-1', '-2', '500'].every((bad) => endings[bad] === undefined)
}

const LANES = 32
const chat = (more: object) =>
  Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'grüß dich 🙂' }], ...more }))
const BODIES: readonly Buffer[] = [
  chat({}),
  chat({ stream: true, stream_options: { include_usage: true } }),
  chat({
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
  }),
  chat({ temperature: 0.5, n: 2, logit_bias: { 1: -100 }, stop: ['\n'], metadata: { a: 'b'.repeat(300) } }),
]
const ANSWER = JSON.stringify({
  object: 'chat.completion',
  choices: [{ index: 0, message: { content: 'hi' } }],
  usage: { total_tokens: 3 },
})
const plain = (body: string, type = 'application/json') =>
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
const WELL = plain(ANSWER)
const STREAM = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n' +
    '1d\r\ndata: {"choices":[{"delta":{}}]\r\n4\r\n}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n',
)
const REPORTS: readonly Buffer[] = [
  plain(
    '# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model="m"} 3\nsglang:token_usage 0.5\n',
    'text/plain',
  ),
  plain(
    JSON.stringify({
      loads: [{ dp_rank: 0, num_running_reqs: 1, num_waiting_reqs: 0, num_used_tokens: 9, token_usage: 0.1 }],
      timestamp: 'x',
    }),
  ),
  plain(
    JSON.stringify({
      object: 'list',
      data: [{ id: 'm', object: 'model', owned_by: 'sglang', max_model_len: 4096 }],
    }),
  ),
  plain(JSON.stringify({ model_path: '/m', tokenizer_path: '/m', max_total_num_tokens: 1, version: '1' })),
]
/** By a name of this machine: the control plane is closed to others while there is no key. */
const ASKED = [
  '/engine_metrics',
  '/get_loads',
  '/v1/models',
  '/get_server_info',
  '/get_model_info',
  '/workers',
]

/** A worker that answers every request well. */
export function startWellWorker(): Promise<{ url: string; server: Server }> {
  return startByteWorker(() => WELL)
}

/** A server of bytes: what it says to a request is up to `answer`. */
async function startByteWorker(answer: (head: string) => Buffer): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.setEncoding('latin1')
    let held = ''
    socket.on('data', (text: string) => {
      held += text
      const end = held.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(held.slice(0, end))?.[1] ?? 0)
      if (held.length < end + 4 + length) return
      const bytes = answer(held.slice(0, end))
      held = ''
      if (bytes === WELL) socket.write(bytes)
      else socket.end(bytes)
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address() as { port: number }
  return { url: `http://127.0.0.1:${address.port}`, server }
}

function startFuzzed(url: string): Promise<BuiltGateway> {
  return startBuiltGateway({
    kernel: {
      threads: 1,
      retry: { maxAttempts: 1 },
      breaker: { enabled: false },
      upstream: { firstByteMs: 5_000, idleMs: 5_000 },
      log: { level: 'error', access: false },
    },
    workers: [{ url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
}

async function fuzz(
  count: number,
  answer: (head: string) => Buffer,
  next: () => { head: string; body: Buffer },
): Promise<FuzzReport> {
  const { url, server } = await startByteWorker(answer)
  // A machine that is busy with a run of hours may be slow once.
  const gateway = await startFuzzed(url)
    .catch(() => startFuzzed(url))
    .catch(() => startFuzzed(url))
  const endings: Record<string, number> = {}
  const startedAtMs = performance.now()
  let left = count
  const endProbe = probeLiveness(gateway.port)
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      const lane = new HttpLane(gateway.port)
      while (left-- > 0) {
        const { head, body } = next()
        const ending = String(await lane.send(head, body))
        endings[ending] = (endings[ending] ?? 0) + 1
      }
      lane.close()
    }),
  )
  const livenessP99Ms = await endProbe()
  const seconds = (performance.now() - startedAtMs) / 1000
  const health = await healthOf(gateway)
  await gateway.command.stop()
  server.close()
  return { count, seconds, endings, livenessP99Ms, ...health }
}

/** What the gateway logged as an error of its own, and whether it serves as before. */
export async function healthOf(gateway: BuiltGateway): Promise<{ errors: string[]; isWell: boolean }> {
  const alive = await gateway.get('/liveness').catch(() => null)
  const errors = gateway.command.lines.filter((line) => line.includes('"level":"error"')).slice(0, 20)
  return { errors, isWell: alive?.status === 200 && !gateway.command.hasEnded }
}

/** Asks for /liveness all the time. @returns ends it, and gives the 99th percentile in milliseconds */
export function probeLiveness(port: number): () => Promise<number> {
  let isOver = false
  const waits: number[] = []
  const probe = (async () => {
    const lane = new HttpLane(port)
    while (!isOver) {
      const sentAtMs = performance.now()
      await lane.send('GET /liveness HTTP/1.1\r\nhost: a\r\n', Buffer.alloc(0))
      waits.push(performance.now() - sentAtMs)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    lane.close()
  })()
  return async () => {
    isOver = true
    await probe
    waits.sort((a, b) => a - b)
    return waits[Math.floor(waits.length * 0.99)] ?? 0
  }
}

const CHAT_HEAD = 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n'

export function fuzzBodies(count: number, seed: number): Promise<FuzzReport> {
  const draw = seeded(seed)
  return fuzz(
    count,
    () => WELL,
    () => ({ head: CHAT_HEAD, body: mutate(pickOf(BODIES, draw), BODIES, draw) }),
  )
}

export function fuzzAnswers(count: number, seed: number): Promise<FuzzReport> {
  const draw = seeded(seed)
  const answers = [WELL, STREAM]
  const answer = (head: string) =>
    head.startsWith('POST /v1/chat')
      ? mutate(pickOf(answers, draw), answers, draw)
      : mutate(pickOf(REPORTS, draw), REPORTS, draw)
  return fuzz(count, answer, () =>
    draw(3) > 0
      ? { head: CHAT_HEAD, body: pickOf(BODIES, draw) }
      : { head: `GET ${ASKED[draw(ASKED.length)]} HTTP/1.1\r\nhost: 127.0.0.1\r\n`, body: Buffer.alloc(0) },
  )
}

function pickOf<T>(list: readonly T[], draw: Draw): T {
  return list[draw(list.length)]
}
