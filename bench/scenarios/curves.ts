/** How cost, throughput and memory change with one quantity; `--plots` draws them. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startFleetGateway } from '../support/fleet.ts'
import { type GatewayOptions, startGateway } from '../support/gateway.ts'
import { configurations } from '../support/gateway-config.ts'
import { compileGuests } from '../support/guests.ts'
import { cpuPerRequest, type LoadResult, runLoad, warmUp } from '../support/load.ts'
import { startMesh } from '../support/mesh.ts'
import { openFileLimit, temporaryDirectory, treeRssBytes } from '../support/process.ts'
import { tenantKeys } from '../support/request-bytes.ts'
import { BENCH_KEY, type RunningWorker, type Subject, startWorker } from '../support/subject.ts'
import { startWasmGateway } from '../support/wasm-gateway.ts'

const CONNECTIONS = 32
/** A curve has many points, each of which needs a start. */
const MAX_ROUNDS = 3
/** Open files of a gateway apart from its connections. */
const OTHER_FILES = 300
/** Requests per second over all gateways of a mesh. */
const MESH_RATE = 1_600

type Load = Readonly<Record<string, number>>

interface Curve {
  readonly name: string
  readonly question: string
  readonly axis: string
  readonly points: readonly number[]
  /** Number of simulated workers. Default 1. */
  readonly workers?: number
  /** Gateways under load, of which each has a load client. */
  start(x: number, worker: RunningWorker): Promise<readonly Subject[]>
  load?(x: number): Load
}

/** One load client per gateway at the same time. @returns their sum */
async function loadAll(gateways: readonly Subject[], load: Load): Promise<LoadResult> {
  const results = await Promise.all(gateways.map((gateway) => runLoad('paced-load.ts', gateway, load)))
  const sum = (key: string) => results.reduce((total, { report }) => total + report[key], 0)
  const most = (key: string) => Math.max(...results.map(({ report }) => report[key]))
  return {
    cpuMicros: results.reduce((total, { cpuMicros }) => total + cpuMicros, 0),
    report: {
      requests: sum('requests'),
      perSecond: sum('perSecond'),
      p99Micros: most('p99Micros'),
      clientCore: sum('clientCore'),
    },
  }
}

async function measure(
  curve: Curve,
  x: number,
  worker: RunningWorker,
  { rounds, seconds, progress }: RunOptions,
): Promise<Figure[]> {
  progress(`${x} ${curve.axis}`)
  const gateways = await curve.start(x, worker)
  try {
    const load = { connections: CONNECTIONS, bytes: 250, rate: 0, ...curve.load?.(x) }
    await warmUp((length) => loadAll(gateways, { ...load, rate: 0, seconds: length }))
    const results: LoadResult[] = []
    for (let round = 0; round < Math.min(rounds, MAX_ROUNDS); round++)
      results.push(await loadAll(gateways, { ...load, seconds }))
    const each = (key: string, unit = 1) => results.map(({ report }) => report[key] / unit)
    const memory = gateways.reduce((sum, { pid }) => sum + treeRssBytes(pid), 0) / 1e6
    return [
      { name: 'CPU per request', unit: 'µs', x, values: cpuPerRequest(results) },
      { name: 'requests per second', unit: '1/s', x, values: each('perSecond') },
      { name: 'p99', unit: 'ms', x, values: each('p99Micros', 1_000) },
      { name: 'memory afterwards', unit: 'MB', x, values: [memory] },
      { name: 'cores of the gateway', unit: '', x, values: coresOf(results) },
      { name: 'cores of the load client', unit: '', x, values: each('clientCore') },
    ]
  } finally {
    for (const gateway of gateways) await gateway.stop()
  }
}

function coresOf(results: readonly LoadResult[]): number[] {
  return cpuPerRequest(results).map((micros, round) => (micros * results[round].report.perSecond) / 1e6)
}

function toScenario(curve: Curve): Scenario {
  const { name, question, axis } = curve
  const run = async (options: RunOptions) => {
    const worker = await startWorker('worker.ts', curve.workers)
    try {
      const figures: Figure[] = []
      for (const x of curve.points) figures.push(...(await measure(curve, x, worker, options)))
      return figures
    } finally {
      await worker.child.stop()
    }
  }
  return { name, question, axis, run }
}

/** Each takes two open files of the gateway: client and worker. */
function affordableConnections(): number {
  return Math.min(10_000, Math.floor((openFileLimit() - OTHER_FILES) / 2))
}

const one = async (options: GatewayOptions) => [await startGateway(options)]

export const curvesThreads = toScenario({
  name: 'curves-threads',
  question: 'what do more data threads add?',
  axis: 'threads',
  points: [1, 2, 4],
  start: (threads, { ports }) => one({ workerPorts: ports, kernel: { threads } }),
  load: (threads) => ({ connections: CONNECTIONS * threads }),
})

export const curvesConnections = toScenario({
  name: 'curves-connections',
  question: 'what do more connections of clients cost, each with a request at any time?',
  axis: 'connections',
  points: [10, 100, 1_000, affordableConnections()],
  start: (_connections, { ports }) => one({ workerPorts: ports }),
  load: (connections) => ({ connections }),
})

export const curvesWorkers = toScenario({
  name: 'curves-workers',
  question: 'what do more workers cost with the policy cache_aware?',
  axis: 'workers',
  points: [10, 100, 500, 2_000],
  workers: 2_000,
  start: async (count, { ports }) => [
    await startFleetGateway(
      ports.slice(0, count),
      { disable_health_check: true },
      { kernel: { policy: 'cache_aware' } },
    ),
  ],
})

export const curvesModules = toScenario({
  name: 'curves-modules',
  question: 'what do more WASM modules cost, each of which adds a header?',
  axis: 'modules',
  points: [1, 4, 16, 64],
  start: async (count, { port }) => {
    const use = { guest: 'header', point: 'OnRequest', instance: 'reuse' } as const
    const modules = Array.from({ length: count }, () => use)
    return [await startWasmGateway({ workerPort: port, guests: compileGuests(['header']), modules })]
  },
})

export const curvesTenants = toScenario({
  name: 'curves-tenants',
  question: 'what do more tenants cost, with limits and usage?',
  axis: 'tenants',
  points: [1, 10, 100, 1_000],
  start: (count, { ports }) => {
    const tenantKeysOf = tenantKeys(count).map((key, index) => `tenant-${index}:${key}`)
    const features = configurations.production()
    const auth = { apiKey: BENCH_KEY, tenantKeys: tenantKeysOf }
    return one({
      workerPorts: ports,
      ...features,
      plugins: { ...features.plugins, auth, storage: { dir: temporaryDirectory() }, usage: {} },
    })
  },
  load: (tenants) => ({ tenants }),
})

export const curvesGateways = toScenario({
  name: 'curves-gateways',
  question: `what does a mesh of more gateways cost, at ${MESH_RATE} requests/s over all of them?`,
  axis: 'gateways on one Valkey',
  points: [1, 2, 4, 8],
  start: (count, { ports }) => startMesh(count, ports),
  load: (count) => ({ rate: MESH_RATE / count }),
})
