/** The redaction example leaks nothing: any route, streamed or not, any kind of worker, any cut of the text; the store included. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { BUILD_LIMIT_MS } from '../../wasm-sdk/fixtures/built-modules.ts'
import type { TestGateway } from '../support/gateway.ts'
import { type RedactionGateway, startRedaction } from '../support/redaction-gateway.ts'
import type { Said, TextWorkers, WorkerKind } from '../support/text-workers.ts'

const SECRETS = ['sk-live-42', 'Zü"rich😀']
const MASK = '[redacted]'

let redaction: RedactionGateway
let gateway: TestGateway
let workers: TextWorkers

beforeAll(async () => {
  redaction = await startRedaction('examples/wasm-redact-stream', 'OnText', { secrets: SECRETS.join(',') })
  ;({ gateway, workers } = redaction)
}, BUILD_LIMIT_MS)

afterAll(() => redaction?.close())

type Json = Record<string, unknown>

const TOOL = { name: 'look', description: 'd', parameters: { type: 'object', properties: {} } }
const SCHEMA = { type: 'object', properties: {} }
const messages = [{ role: 'user', content: 'hi' }]

interface Request {
  readonly path: string
  readonly body: Json
  readonly workers: readonly WorkerKind[]
}

/** The formats of vendors have no completion of a bare text, and no log probabilities. */
const COMPLETERS: readonly WorkerKind[] = ['relayed', 'generate', 'grpc']
const CHATTERS: readonly WorkerKind[] = ['relayed', 'messages', 'responses', 'grpc']
const REQUESTS: readonly Request[] = [
  {
    path: '/v1/chat/completions',
    body: { messages, logprobs: true, tools: [{ type: 'function', function: TOOL }] },
    workers: ['relayed', 'grpc'],
  },
  {
    path: '/v1/chat/completions',
    body: { messages, tools: [{ type: 'function', function: TOOL }] },
    workers: ['messages', 'responses'],
  },
  { path: '/v1/completions', body: { prompt: 'hi', max_tokens: 9_000 }, workers: COMPLETERS },
  {
    path: '/generate',
    body: { text: 'hi', sampling_params: { max_new_tokens: 9_000 } },
    workers: COMPLETERS,
  },
  {
    path: '/v1/messages',
    body: { messages, max_tokens: 9_000, tools: [{ name: 'look', description: 'd', input_schema: SCHEMA }] },
    workers: CHATTERS,
  },
  {
    path: '/v1/responses',
    body: { input: 'hi', tools: [{ type: 'function', ...TOOL }] },
    workers: CHATTERS,
  },
]

async function post(path: string, body: Json, model: string, stream: boolean): Promise<string> {
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, model, stream }),
  })
  const text = await reply.text()
  if (reply.status !== 200) throw new Error(`${path} ${model}: ${reply.status} ${text}`)
  return text
}

/** Every JSON value of an answer. */
function valuesOf(text: string): unknown[] {
  if (!text.includes('data: ')) return [JSON.parse(text)]
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)))
}

/** Texts by the members that hold them, put together from all events. */
function textsOf(values: readonly unknown[]): Map<string, string> {
  const texts = new Map<string, string>()
  const add = (value: unknown, path: string): void => {
    if (typeof value === 'string') texts.set(path, (texts.get(path) ?? '') + value)
    else if (Array.isArray(value)) for (const one of value) add(one, path)
    else if (typeof value === 'object' && value !== null)
      for (const [name, one] of Object.entries(value)) add(one, `${path}.${name}`)
  }
  for (const value of values) {
    const { type } = value as Json
    add(value, typeof type === 'string' ? type : '')
  }
  return texts
}

function checkNoLeak(values: readonly unknown[], from: string): void {
  const texts = [JSON.stringify(values), ...textsOf(values).values()]
  for (const secret of SECRETS)
    for (const form of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    ])
      for (const text of texts) if (text.includes(form)) throw new Error(`${from} leaks ${form}: ${text}`)
}

function masked(text: string): string {
  return SECRETS.reduce((so, secret) => so.replaceAll(secret, MASK), text)
}

/** A response as the store has it, once it has ended. */
async function stored(id: string): Promise<Json> {
  for (;;) {
    const value = (await (await fetch(`${gateway.url}/v1/responses/${id}`)).json()) as Json
    if (value.status !== 'queued' && value.status !== 'in_progress') return value
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function checkRoute(request: Request, kind: WorkerKind, stream: boolean): Promise<void> {
  const from = `${request.path} of ${kind}, stream ${stream}`
  const values = valuesOf(await post(request.path, request.body, kind, stream))
  checkNoLeak(values, from)
  const text = masked(workers.said.text.join(''))
  const found = [...textsOf(values).values()]
  if (!found.some((one) => one.includes(text)))
    throw new Error(`${from} lacks ${text}: ${JSON.stringify(values)}`)
  if (request.path !== '/v1/responses') return
  const last = values.at(-1) as { id?: string; response?: { id: string; output: unknown } }
  const record = await stored(last.response?.id ?? String(last.id))
  checkNoLeak([record], `${from}, stored`)
  expect(record.output).toEqual(last.response?.output ?? (last as Json).output)
}

/** @param follows reads the stream of its events too */
async function checkBackground(kind: WorkerKind, follows: boolean): Promise<void> {
  const from = `background of ${kind}, followed ${follows}`
  const body = { input: 'hi', background: true, store: true }
  const { id } = JSON.parse(await post('/v1/responses', body, kind, false)) as { id: string }
  if (follows) {
    const reply = await fetch(`${gateway.url}/v1/responses/${id}?stream=true`)
    const values = valuesOf(await reply.text())
    expect(values.at(-1)).toMatchObject({ type: 'response.completed' })
    checkNoLeak(values, from)
  }
  checkNoLeak([await stored(id)], `${from}, stored`)
}

function checkSocket(kind: WorkerKind): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`)
    const values: Json[] = []
    socket.on('error', reject)
    socket.on('open', () =>
      socket.send(JSON.stringify({ type: 'response.create', model: kind, input: 'hi' })),
    )
    socket.on('message', (data) => {
      const value = JSON.parse(String(data)) as Json
      values.push(value)
      if (value.type !== 'response.completed' && value.type !== 'error') return
      socket.close()
      try {
        expect(value.type).toBe('response.completed')
        checkNoLeak(values, `socket of ${kind}`)
        resolve()
      } catch (error) {
        reject(error)
      }
    })
  })
}

const fragments = fc.array(
  fc.constantFrom(...SECRETS, 'sk-live-4', 'sk-', 'Zü"', ' a ', 'größe ', '😀', '\n', '\\'),
  { minLength: 1, maxLength: 4 },
)
const wholeText = fragments.map((parts) => `${parts.join('')} ${SECRETS[0]}.`)
/** Cut anywhere, also within a character of two units. */
const pieces = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 }))
    .map(([all, sizes]) => {
      const cut: string[] = []
      for (let at = 0, turn = 0; at < all.length; turn++) {
        const size = sizes[turn % sizes.length]
        cut.push(all.slice(at, at + size))
        at += size
      }
      return cut
    })
const said: fc.Arbitrary<Said> = fc.record({
  reasoning: pieces(wholeText),
  text: pieces(wholeText),
  arguments: pieces(wholeText.map((text) => JSON.stringify({ text }))),
})

/** Requests of different texts cannot be mixed: each run is one text for all. */
const RUNS = Number(process.env.WEIR_REDACTION_RUNS ?? 60)

test('no secret leaves in any format', async () => {
  await fc.assert(
    fc.asyncProperty(said, fc.constantFrom<WorkerKind>('messages', 'responses'), async (given, vendor) => {
      workers.said = given
      const checks: Promise<void>[] = []
      for (const kind of ['relayed', 'generate', vendor, 'grpc'] as const) {
        for (const stream of [true, false]) {
          for (const request of REQUESTS)
            if (request.workers.includes(kind)) checks.push(checkRoute(request, kind, stream))
          if (CHATTERS.includes(kind)) checks.push(checkBackground(kind, stream))
        }
        if (CHATTERS.includes(kind)) checks.push(checkSocket(kind))
      }
      await Promise.all(checks)
    }),
    { numRuns: RUNS },
  )
})
