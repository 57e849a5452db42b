/**
 * What a mesh costs: control sides of gateways in this process, on a real valkey-server, that exchange loads and notes
 * about prompts. Run `node --conditions=weir-source bench/micro/mesh-peers.ts --peers 3,10,30`; `valkey-server` is on
 * PATH.
 */
import { createConnection } from 'node:net'
import { parseArgs } from 'node:util'
import { defineValidator } from '#kernel'
import { WorkerHashes } from '#shared'
import { createLogger } from '../../kernel/observe/log.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { meshConfig } from '../../plugins/mesh/mesh/config.ts'
import { LoadExchange } from '../../plugins/mesh/mesh/load-exchange.ts'
import { SharedMesh } from '../../plugins/mesh/mesh/mesh-service.ts'
import { ValkeyEngine } from '../../plugins/mesh/valkey/valkey-engine.ts'
import { NoteExchange } from '../../plugins/routing/policies/notes/note-exchange.ts'
import { NoteRing } from '../../plugins/routing/policies/notes/note-ring.ts'
import { engineConfig } from '../../test/support/engine-config.ts'
import { PolicyThread } from '../../test/support/policy-fleet.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
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

const ABOUT = {
  address: '',
  software: '',
  protocols: [1],
  secretCheck: '',
  status: 'Alive',
  inFlight: 0,
  config: {},
  position: null,
} as const
const log = createLogger({ level: 'warn', thread: 0 })

/** Control of one gateway; stands in for its data threads too. */
class Gateway {
  readonly mesh: SharedMesh
  readonly #inFlight = new Int32Array(WORKERS)
  readonly #elsewhere = new Int32Array(WORKERS)
  readonly #loads: LoadExchange
  readonly #ring: NoteRing
  readonly #notes: NoteExchange
  readonly #names: readonly number[]
  #count = 0

  constructor(name: string, url: string) {
    const config = defineValidator(meshConfig).parse({ name, secret: 'abcdefghijklmnopqrstuvwxyz' })
    const engine = new ValkeyEngine(engineConfig(url, 2_000), 'weir:{bench}:', () => undefined)
    this.mesh = new SharedMesh({
      engine,
      store: null,
      isShared: true,
      name,
      config,
      about: () => ABOUT,
      log,
    })
    const workers = Array.from({ length: WORKERS }, (_, slot) => workerEntry({ slot }))
    this.#loads = new LoadExchange(this.mesh, {
      workers,
      inFlight: (slot) => this.#inFlight[slot],
      inFlightElsewhere: (slot) => this.#elsewhere[slot],
      setInFlightElsewhere: (slot, count) => {
        this.#elsewhere[slot] = count
      },
    })
    const memory = new SharedMemory()
    const { state, metrics } = new PolicyThread({ cacheAware: { maxBytes: TABLE_BYTES } }, memory)
    const hashes = new WorkerHashes()
    hashes.follow(workers)
    const outcomes = metrics.counter({ name: 'notes_total', help: '', labels: ['outcome'] })
    this.#ring = new NoteRing((block, bytes) => memory.block(block, bytes), 'prefixes-notes')
    this.#notes = new NoteExchange({
      channel: this.mesh.channel('prefixes'),
      ring: this.#ring,
      counters: state.counters,
      hashes,
      workerOf: (slot) => workers[slot],
      apply: (low, high, span, worker) => state.prefixes.learn(low, high, span, worker),
      count: {
        sent: outcomes.labels('sent'),
        received: outcomes.labels('received'),
        dropped: outcomes.labels('dropped'),
      },
    })
    this.#names = workers.map((worker) => state.counters.nameOf(worker))
  }

  async start(): Promise<void> {
    await this.mesh.start()
    this.#notes.start()
    this.#loads.start()
  }

  /** As data threads do: notes, and other numbers of requests. */
  feed(notes: number): void {
    const position = this.#ring.reserve(notes)
    for (let i = 0; i < notes; i++) {
      const number = ++this.#count
      this.#ring.put(position + i, Math.imul(number, 0x9e3779b1), number, 128, this.#names[number % WORKERS])
    }
    for (let slot = 0; slot < WORKERS; slot++) this.#inFlight[slot] = Math.floor(Math.random() * 20)
  }

  async stop(): Promise<void> {
    this.#loads.stop()
    this.#notes.close()
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
