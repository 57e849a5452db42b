/**
 * Module versions that change under load: streams and requests continue, each uses exactly one version, and none is lost
 * or duplicated.
 */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { type BuiltGateway, startBuiltGateway, stopCommands, sumOf, until } from '../support/built-command.ts'
import {
  jsonAnswer,
  type RecordedRequest,
  type ScriptedWorker,
  type StreamStep,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'
import { isThorough } from '../support/thorough.ts'

const CHAT = 'POST /v1/chat/completions'
const STREAMS = isThorough ? 200 : 60
/** New streams opened after each change. */
const LATER_STREAMS = 10
const REQUESTS_PER_SECOND = isThorough ? 500 : 200
/** Duration of each stage under load, ms. */
const STAGE_MS = 800
const TICK_MS = 10
const EVENT_EVERY_MS = 400

/** One change, and the versions that requests may use from then on. */
interface Stage {
  readonly versions: readonly string[]
  readonly change: (versions: Versions) => Promise<void>
}

const STAGES: readonly Stage[] = [
  { versions: ['one'], change: async () => {} },
  { versions: ['two'], change: (module) => module.replace('two') },
  {
    versions: ['two', 'three'],
    change: (module) => module.replace('three', { kind: 'canary', percent: 25 }),
  },
  { versions: ['three'], change: (module) => module.post('promote') },
  { versions: ['two'], change: (module) => module.post('rollback') },
  { versions: ['five'], change: (module) => module.replace('five') },
  { versions: ['two'], change: (module) => module.post('rollback') },
]

const folder = new GuestFolder()
let worker: ScriptedWorker
afterEach(async () => {
  await stopCommands()
  await worker.close()
  folder.remove()
})

/** The module through the admin API. */
class Versions {
  readonly #gateway: BuiltGateway
  #uuid = ''

  constructor(gateway: BuiltGateway) {
    this.#gateway = gateway
  }

  async register(): Promise<void> {
    const module = await folder.module('m', ['OnRequest', 'OnStreamEvent'], doing('one'))
    const response = await this.#gateway.send('POST', '/wasm', { modules: [module] })
    const { modules } = (await response.json()) as { modules: { add_result: { Success: string } }[] }
    this.#uuid = modules[0].add_result.Success
  }

  async replace(version: string, trial?: object): Promise<void> {
    await this.change({ config: doing(version), ...(trial !== undefined && { trial }) })
  }

  async change(more: object): Promise<void> {
    await this.#send('PUT', `/wasm/${this.#uuid}`, { file_path: await folder.guest('next'), ...more })
  }

  async post(action: 'promote' | 'rollback'): Promise<void> {
    await this.#send('POST', `/wasm/${this.#uuid}/${action}`)
  }

  async #send(method: string, path: string, body?: unknown): Promise<void> {
    const response = await this.#gateway.send(method, path, body)
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    this.#uuid = (JSON.parse(text) as { module_uuid: string }).module_uuid
  }
}

/** Counts the request, sets the version header, and appends the version and event count to each event. */
function doing(mark: string): Record<string, string> {
  return { do: 'mark', mark, head: `{"action":"modify","headers_add":[["x-version","${mark}"]]}` }
}

/** Stages that a request may fall into: from the last completed one to the last started one. */
interface Span {
  readonly from: number
  to: number
}

interface Completed extends Span {
  readonly key: string
  readonly status: number
  readonly body: string
}

/** Sends requests at a constant rate, independent of earlier ones. */
class Load {
  readonly responses: Promise<Completed>[] = []
  /** Number of completed requests by the stage in which they were sent. */
  readonly completed = new Map<number, number>()
  readonly #url: string
  readonly #stages: Span
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 })
  readonly #startedAtMs = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor(url: string, stages: Span) {
    this.#url = url
    this.#stages = stages
    this.#timer = setInterval(() => this.#send(), TICK_MS)
  }

  async end(): Promise<{ readonly requests: Completed[]; readonly perSecond: number }> {
    clearInterval(this.#timer)
    const perSecond = (this.responses.length * 1_000) / (performance.now() - this.#startedAtMs)
    const requests = await Promise.all(this.responses)
    this.#agent.destroy()
    return { requests, perSecond }
  }

  #send(): void {
    const due = ((performance.now() - this.#startedAtMs) * REQUESTS_PER_SECOND) / 1_000
    while (this.responses.length < due) this.responses.push(this.#request(`request-${this.responses.length}`))
  }

  async #request(key: string): Promise<Completed> {
    const { from } = this.#stages
    const { promise, resolve, reject } = Promise.withResolvers<Completed>()
    const headers = { 'content-type': 'application/json', 'x-request-id': key }
    const sent = request(
      `${this.#url}/v1/chat/completions`,
      { method: 'POST', agent: this.#agent, headers },
      (response) => {
        const status = response.statusCode ?? 0
        text(response).then((body) => {
          this.completed.set(from, (this.completed.get(from) ?? 0) + 1)
          resolve({ key, status, body, from, to: this.#stages.to })
        }, reject)
      },
    )
    sent.on('error', reject).end(JSON.stringify({ model: 'test-model', messages: [] }))
    return promise
  }
}

/** Number of events the worker wrote into each stream, and the end of all streams. */
class Streams {
  readonly written = new Map<string, number>()
  #isOver = false
  #next = Promise.withResolvers<void>()
  readonly #timer = setInterval(() => {
    this.#next.resolve()
    this.#next = Promise.withResolvers<void>()
  }, EVENT_EVERY_MS)

  end(): void {
    this.#isOver = true
    this.#next.resolve()
    clearInterval(this.#timer)
  }

  *steps(key: string): Iterable<StreamStep> {
    for (let count = 0; !this.#isOver; count++) {
      this.written.set(key, count + 1)
      yield `data: ${count}\n\n`
      yield { until: this.#next.promise }
    }
    yield 'data: [DONE]\n\n'
  }
}

interface Opened extends Span {
  readonly key: string
  readonly stream: SseStream
}

async function openStreams(url: string, count: number, stages: Span, from: number): Promise<Opened[]> {
  const opened = Array.from({ length: count }, (_, index) => {
    const key = `stream-${from + index}`
    const headers = { 'x-request-id': key }
    const body = { model: 'test-model', messages: [], stream: true }
    return { key, from: stages.from, to: 0, stream: openSse(`${url}/v1/chat/completions`, { headers, body }) }
  })
  await Promise.all(opened.map(({ stream }) => stream.receive(1)))
  for (const one of opened) one.to = stages.to
  return opened
}

const allowed = ({ from, to }: Span) =>
  new Set(STAGES.slice(from, to + 1).flatMap(({ versions }) => versions))
/** All values of a header, as received. */
const valuesOf = (received: RecordedRequest, name: string) =>
  received.rawHeaders.filter(([given]) => given.toLowerCase() === name).map(([, value]) => value)

test('replace, canary and rollback under streams and requests: nothing lost, nothing duplicated', {
  timeout: 120_000,
}, async () => {
  const streams = new Streams()
  worker = await startScriptedWorker()
  worker.script(CHAT, (received) => {
    const key = received.header('x-request-id') ?? ''
    const headers = { 'content-type': 'text/event-stream' }
    return key.startsWith('stream-') ? streamAnswer(streams.steps(key), { headers }) : jsonAnswer({ key })
  })
  const gateway = await startBuiltGateway({
    // Only losses and duplicates are checked, on machines of any speed.
    plugins: { wasm: { roots: [folder.path], timeoutMs: 20_000 } },
    workers: [{ url: worker.url, models: [{ id: 'test-model' }] }],
  })
  const module = new Versions(gateway)
  await module.register()

  const stages = { from: 0, to: 0 }
  const opened = await openStreams(gateway.url, STREAMS, stages, 0)
  const load = new Load(gateway.url, stages)
  for (const [index, { change }] of STAGES.entries()) {
    stages.to = index
    await change(module)
    stages.from = index
    opened.push(...(await openStreams(gateway.url, LATER_STREAMS, stages, opened.length)))
    // Requests sent before the stage began may take up much of it.
    const enough = (REQUESTS_PER_SECOND * STAGE_MS) / 1_000
    await until(() => (load.completed.get(index) ?? 0) >= enough)
  }
  const { requests, perSecond } = await load.end()
  expect(opened.filter(({ stream }) => stream.isWhole)).toEqual([])
  streams.end()
  await Promise.all(opened.map(({ stream }) => stream.done))
  console.info(`${requests.length} requests, ${Math.round(perSecond)} a second; ${opened.length} streams`)
  // The full rate on a dedicated machine; a slow one does less.
  expect(perSecond).toBeGreaterThan(REQUESTS_PER_SECOND / 20)

  // Every request got its own response, every stream is complete.
  for (const { key, status, body } of requests) expect([status, body]).toEqual([200, JSON.stringify({ key })])
  const arrived = new Map<string, string[]>()
  for (const received of worker.requestsTo(CHAT)) {
    const key = received.header('x-request-id') ?? ''
    expect(arrived.has(key), `${key} came twice`).toBe(false)
    arrived.set(key, valuesOf(received, 'x-version'))
  }
  expect(arrived.size).toBe(requests.length + opened.length)
  for (const span of [...requests, ...opened]) {
    const [version, ...more] = arrived.get(span.key) ?? []
    expect(more, `${span.key} met more than one version`).toEqual([])
    expect(allowed(span), `the version of ${span.key}`).toContain(version)
  }
  for (const { key, stream } of opened) {
    const version = arrived.get(key)?.[0]
    const written = Array.from({ length: streams.written.get(key) ?? 0 }, (_, n) => `${n} ${version} ${n}`)
    expect([stream.status, stream.isWhole]).toEqual([200, true])
    expect(stream.events.map(({ data }) => data)).toEqual([...written, '[DONE]'])
  }

  const canary = STAGES.findIndex(({ versions }) => versions.length > 1)
  const during = requests.filter(({ from, to }) => from === canary && to === canary)
  const share = during.filter(({ key }) => arrived.get(key)?.[0] === 'three').length / during.length
  expect(share).toBeGreaterThan(0.15)
  expect(share).toBeLessThan(0.35)
  const metrics = await gateway.metrics()
  const outcomes = [...metrics.keys()].filter((name) => name.startsWith('weir_wasm_executions_total'))
  expect(outcomes.filter((name) => /outcome="(error|bad_output|fuel|timeout|crashed)/.test(name))).toEqual([])
  expect(sumOf(metrics, 'weir_wasm_skipped_total')).toBe(0)
  // The counter shared by all versions has each request once.
  await module.change({ config: { do: 'count' } })
  expect(await (await gateway.send('POST', CHAT.slice(5), {})).text()).toBe(String(arrived.size + 1))
})
