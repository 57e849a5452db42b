/**
 * Versions of a module that change under load: streams and requests go on meanwhile, each meets exactly one version, and
 * nothing is lost or comes twice.
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

const CHAT = 'POST /v1/chat/completions'
const STREAMS = 200
/** Opened anew after each change. */
const LATER_STREAMS = 10
const REQUESTS_PER_SECOND = 500
/** How long each stage is under load. */
const STAGE_MS = 800
const TICK_MS = 10
const EVENT_EVERY_MS = 400

/** One change, and the versions that requests may meet from then on. */
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
  { versions: ['two'], change: (module) => module.replace('four', { kind: 'shadow' }) },
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

/** The module as its administrator sees it. */
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
    await this.#ask('PUT', `/wasm/${this.#uuid}`, { file_path: await folder.guest('next'), ...more })
  }

  async post(action: 'promote' | 'rollback'): Promise<void> {
    await this.#ask('POST', `/wasm/${this.#uuid}/${action}`)
  }

  async #ask(method: string, path: string, body?: unknown): Promise<void> {
    const response = await this.#gateway.send(method, path, body)
    const said = await response.text()
    if (response.status !== 200) throw new Error(said)
    this.#uuid = (JSON.parse(said) as { module_uuid: string }).module_uuid
  }
}

/** Counts the request, names the version in a header, and behind each event with how many came before. */
function doing(mark: string): Record<string, string> {
  return { do: 'mark', mark, head: `{"action":"modify","headers_add":[["x-version","${mark}"]]}` }
}

/** Stages that something may have met: from the last one that was complete to the last one that had begun. */
interface Span {
  readonly from: number
  to: number
}

interface Asked extends Span {
  readonly key: string
  readonly status: number
  readonly said: string
}

/** Requests at a steady rate, whatever becomes of those before. */
class Load {
  readonly answers: Promise<Asked>[] = []
  /** How many have an answer, by the stage in which they were asked. */
  readonly answered = new Map<number, number>()
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

  async end(): Promise<{ readonly asked: Asked[]; readonly perSecond: number }> {
    clearInterval(this.#timer)
    const perSecond = (this.answers.length * 1_000) / (performance.now() - this.#startedAtMs)
    const asked = await Promise.all(this.answers)
    this.#agent.destroy()
    return { asked, perSecond }
  }

  #send(): void {
    const due = ((performance.now() - this.#startedAtMs) * REQUESTS_PER_SECOND) / 1_000
    while (this.answers.length < due) this.answers.push(this.#ask(`request-${this.answers.length}`))
  }

  async #ask(key: string): Promise<Asked> {
    const { from } = this.#stages
    const { promise, resolve, reject } = Promise.withResolvers<Asked>()
    const headers = { 'content-type': 'application/json', 'x-request-id': key }
    const asking = request(
      `${this.#url}/v1/chat/completions`,
      { method: 'POST', agent: this.#agent, headers },
      (response) => {
        const status = response.statusCode ?? 0
        text(response).then((said) => {
          this.answered.set(from, (this.answered.get(from) ?? 0) + 1)
          resolve({ key, status, said, from, to: this.#stages.to })
        }, reject)
      },
    )
    asking.on('error', reject).end(JSON.stringify({ model: 'test-model', messages: [] }))
    return promise
  }
}

/** What the worker wrote into each stream, and when all of them are to end. */
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
/** All values of a header, as they came on the wire. */
const valuesOf = (received: RecordedRequest, name: string) =>
  received.rawHeaders.filter(([given]) => given.toLowerCase() === name).map(([, value]) => value)

test('replace, canary, shadow and rollback under 200 streams and 500 requests a second: nothing lost, nothing doubled', {
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
    // Only what is lost or doubled counts here, on machines of any speed.
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
    // Those that were asked before the stage began may take up much of it.
    const enough = (REQUESTS_PER_SECOND * STAGE_MS) / 1_000
    await until(() => (load.answered.get(index) ?? 0) >= enough, 60_000)
  }
  const { asked, perSecond } = await load.end()
  expect(opened.filter(({ stream }) => stream.isWhole)).toEqual([])
  streams.end()
  await Promise.all(opened.map(({ stream }) => stream.done))
  console.info(`${asked.length} requests, ${Math.round(perSecond)} a second; ${opened.length} streams`)
  // All that was due on a machine of its own; a slow one does what it can.
  expect(perSecond).toBeGreaterThan(REQUESTS_PER_SECOND / 20)

  // Every request was answered with its own answer, every stream came whole.
  for (const { key, status, said } of asked) expect([status, said]).toEqual([200, JSON.stringify({ key })])
  const arrived = new Map<string, string[]>()
  for (const received of worker.requestsTo(CHAT)) {
    const key = received.header('x-request-id') ?? ''
    expect(arrived.has(key), `${key} came twice`).toBe(false)
    arrived.set(key, valuesOf(received, 'x-version'))
  }
  expect(arrived.size).toBe(asked.length + opened.length)
  for (const span of [...asked, ...opened]) {
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
  const during = asked.filter(({ from, to }) => from === canary && to === canary)
  const share = during.filter(({ key }) => arrived.get(key)?.[0] === 'three').length / during.length
  expect(share).toBeGreaterThan(0.15)
  expect(share).toBeLessThan(0.35)
  const metrics = await gateway.metrics()
  expect(metrics.get('weir_wasm_shadow_comparisons_total{module="m",verdict="different"}')).toBeGreaterThan(
    100,
  )
  expect(metrics.get('weir_wasm_shadow_comparisons_total{module="m",verdict="same"}') ?? 0).toBe(0)
  const outcomes = [...metrics.keys()].filter((name) => name.startsWith('weir_wasm_executions_total'))
  expect(outcomes.filter((name) => /outcome="(error|bad_output|fuel|timeout|crashed)/.test(name))).toEqual([])
  expect(sumOf(metrics, 'weir_wasm_skipped_total')).toBe(0)
  // The counter that all versions share has each request once.
  await module.change({ config: { do: 'count' } })
  expect(await (await gateway.send('POST', CHAT.slice(5), {})).text()).toBe(String(arrived.size + 1))
})
