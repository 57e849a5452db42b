/**
 * What a mesh costs: whole control sides of gateways in this process, on a real valkey-server, that exchange loads and notes
 * about prompts. Run `npm run build`, then `node bench/micro/mesh-peers.ts --peers 3,10,30`; `valkey-server` is on PATH.
 */
import { createConnection } from 'node:net'
import { parseArgs } from 'node:util'
import type { Figure } from '../support/figure.ts'
import { cpuMicros, freePort, startChild, temporaryDirectory, wait, waitUntil } from '../support/process.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({
  options: {
    /** Numbers of gateways, one measurement each. */
    peers: { type: 'string', default: '3,10,30' },
    workers: { type: 'string', default: '200' },
    /** Over all gateways. */
    notesPerSecond: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '10' },
  },
})
const WORKERS = Number(flags.workers)
const NOTES_PER_SECOND = Number(flags.notesPerSecond)
const SECONDS = Number(flags.seconds)
const FEED_MS = 20
const SETTLE_MS = 2_000
const TABLE_BYTES = 1_048_576

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(`../../dist/${file}.js`, import.meta.url).href)) as Record<string, unknown>
}

type Make<Made> = new (...parameters: unknown[]) => Made
interface Mesh {
  readonly messages: { readonly sent: number; readonly received: number; readonly dropped: number }
  start(): Promise<void>
  stop(): Promise<void>
}
interface Ring {
  reserve(count: number): number
  put(position: number, low: number, high: number, value: number, name: number): void
}
interface State {
  readonly counters: { nameOf(worker: object): number }
}

const { SharedMesh } = (await load('plugins/mesh/mesh/mesh-service')) as { SharedMesh: Make<Mesh> }
const { LoadExchange } = (await load('plugins/mesh/mesh/load-exchange')) as {
  LoadExchange: Make<{ start(): void; stop(): void }>
}
const { ValkeyEngine } = (await load('plugins/mesh/valkey/valkey-engine')) as { ValkeyEngine: Make<object> }
const { openNoteRings, openNoteExchanges } = (await load('plugins/routing/policies/notes/shared-notes')) as {
  openNoteRings: (host: object) => { prefixes: Ring }
  openNoteExchanges: (host: object, rings: object, state: object) => { start(): void; close(): void }
}
const { PolicyState } = (await load('plugins/routing/policies/policy-state')) as { PolicyState: Make<State> }
const { policiesConfig } = await load('plugins/routing/policies/config')
const { meshConfig } = await load('plugins/mesh/mesh/config')
const { ThreadMetrics } = (await load('kernel/observe/metrics')) as { ThreadMetrics: Make<object> }
const { resolvePluginConfig } = (await load('plugins/cli/configuration/load-plugin')) as {
  resolvePluginConfig: (name: string, schema: unknown, section: object) => object
}

const log = { info: () => undefined, debug: () => undefined, warn: console.warn, error: console.error }

/** Control of one gateway; stands in for its data threads too. */
class Gateway {
  readonly mesh: Mesh
  readonly #inFlight = new Int32Array(WORKERS)
  readonly #elsewhere = new Int32Array(WORKERS)
  readonly #loads: { start(): void; stop(): void }
  readonly #ring: Ring
  readonly #exchanges: { start(): void; close(): void }
  readonly #names: readonly number[]
  #notes = 0

  constructor(name: string, url: string) {
    const config = resolvePluginConfig('mesh', meshConfig, { name, secret: 'abcdefghijklmnopqrstuvwxyz' })
    const engine = new ValkeyEngine({ url, timeoutMs: 2_000, caFile: null }, 'weir:{bench}:', () => undefined)
    const about = () => ({
      address: name,
      software: '',
      protocols: [1],
      status: 'Alive',
      inFlight: 0,
      config: {},
    })
    this.mesh = new SharedMesh({ engine, isShared: true, name, config, about, log })
    const workers = Array.from({ length: WORKERS }, (_, slot) => {
      return { slot, id: `worker-${slot}`, url: `http://10.0.0.${slot}:8000` }
    })
    const balance = {
      workers,
      inFlight: (slot: number) => this.#inFlight[slot],
      inFlightElsewhere: (slot: number) => this.#elsewhere[slot],
      setInFlightElsewhere: (slot: number, count: number) => {
        this.#elsewhere[slot] = count
      },
    }
    this.#loads = new LoadExchange(this.mesh, balance)
    const blocks = new Map<string, SharedArrayBuffer>()
    const shared = (block: string, bytes: number) => {
      const known = blocks.get(block) ?? new SharedArrayBuffer(bytes)
      blocks.set(block, known)
      return known
    }
    const metrics = new ThreadMetrics()
    const settings = { cacheAware: { maxBytes: TABLE_BYTES } }
    const policies = resolvePluginConfig('policies', policiesConfig, settings)
    const state = new PolicyState({ config: policies, shared, metrics: null, maxWorkers: 4_096 })
    const replica = () => ({ onChange: () => undefined })
    const host = { isControl: true, find: () => this.mesh, shared, metrics, balance, replica }
    const rings = openNoteRings(host)
    this.#ring = rings.prefixes
    this.#exchanges = openNoteExchanges(host, rings, state)
    this.#names = workers.map((worker) => state.counters.nameOf(worker))
  }

  async start(): Promise<void> {
    await this.mesh.start()
    this.#exchanges.start()
    this.#loads.start()
  }

  /** As data threads do: notes, and other numbers of requests. */
  feed(notes: number): void {
    const position = this.#ring.reserve(notes)
    for (let i = 0; i < notes; i++) {
      const number = ++this.#notes
      this.#ring.put(position + i, Math.imul(number, 0x9e3779b1), number, 128, this.#names[number % WORKERS])
    }
    for (let slot = 0; slot < WORKERS; slot++) this.#inFlight[slot] = Math.floor(Math.random() * 20)
  }

  async stop(): Promise<void> {
    this.#loads.stop()
    this.#exchanges.close()
    await this.mesh.stop()
  }
}

/** Statistics of the server, as text. */
async function infoOf(port: number): Promise<string> {
  const socket = createConnection(port, '127.0.0.1').setEncoding('utf8')
  socket.end('INFO stats\r\n')
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}

interface Reading {
  readonly ownMs: number
  readonly engineMs: number
  readonly inBytes: number
  readonly outBytes: number
  readonly received: number
}

async function measure(count: number): Promise<Figure[]> {
  const port = await freePort()
  const files = ['--save', '', '--appendonly', 'yes', '--dir', temporaryDirectory()]
  const server = startChild('valkey-server', ['--port', String(port), ...files])
  await waitUntil('valkey-server listens', 10_000, async () => (await infoOf(port)) !== '')
  const url = `redis://127.0.0.1:${port}`
  const gateways = Array.from({ length: count }, (_, i) => new Gateway(`gw-${i}`, url))
  await Promise.all(gateways.map((gateway) => gateway.start()))
  const read = async (): Promise<Reading> => {
    const stats = await infoOf(port)
    const { user, system } = process.cpuUsage()
    return {
      ownMs: (user + system) / 1_000,
      engineMs: cpuMicros(server.pid) / 1_000,
      inBytes: Number(/total_net_input_bytes:(\d+)/.exec(stats)?.[1]),
      outBytes: Number(/total_net_output_bytes:(\d+)/.exec(stats)?.[1]),
      received: gateways.reduce((sum, { mesh }) => sum + mesh.messages.received, 0),
    }
  }
  /** Rates per second. */
  const rates = async (): Promise<Reading> => {
    await wait(SETTLE_MS)
    const before = await read()
    const startedAtMs = performance.now()
    await wait(SECONDS * 1_000)
    const after = await read()
    const seconds = (performance.now() - startedAtMs) / 1_000
    const rate = (key: keyof Reading) => (after[key] - before[key]) / seconds
    return {
      ownMs: rate('ownMs'),
      engineMs: rate('engineMs'),
      inBytes: rate('inBytes'),
      outBytes: rate('outBytes'),
      received: rate('received'),
    }
  }
  const idle = await rates()
  const perFeed = (NOTES_PER_SECOND / count / 1_000) * FEED_MS
  let owed = 0
  const feeding = setInterval(() => {
    owed += perFeed
    const notes = Math.floor(owed)
    owed -= notes
    for (const gateway of gateways) gateway.feed(notes)
  }, FEED_MS)
  const busy = await rates()
  clearInterval(feeding)
  const dropped = gateways.reduce((sum, { mesh }) => sum + mesh.messages.dropped, 0)
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await server.stop()
  const figure = (name: string, unit: string, value: number): Figure => {
    return { name: `${count} gateways: ${name}`, unit, values: [value] }
  }
  return [
    figure('control, idle', '% core', idle.ownMs / 10 / count),
    figure('control, busy', '% core', busy.ownMs / 10 / count),
    figure('engine, idle', '% core', idle.engineMs / 10),
    figure('engine, busy', '% core', busy.engineMs / 10),
    figure('into the engine', 'KB/s', busy.inBytes / 1_000),
    figure('out of the engine', 'KB/s', busy.outBytes / 1_000),
    figure('messages received by each', '1/s', busy.received / count),
    figure('messages dropped', '', dropped),
  ]
}

const figures: Figure[] = []
for (const count of flags.peers.split(',')) figures.push(...(await measure(Number(count))))
const question = `what do gateways cost each other, with ${WORKERS} workers and ${NOTES_PER_SECOND} notes/s?`
console.log(renderTable({ scenario: 'mesh-peers', question, figures }))
