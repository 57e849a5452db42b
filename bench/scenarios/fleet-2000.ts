/** CPU time, memory and administration of two thousand workers, compared with four. */
import { type Figure, type RunOptions, ratios, type Scenario, withheldFigure } from '../support/figure.ts'
import { type FleetGateway, startFleetGateway } from '../support/fleet.ts'
import { isUnavailable } from '../support/gateway.ts'
import { percentile, startProbe } from '../support/latency-probe.ts'
import { cpuPerRequest, measureRounds, runLoad } from '../support/load.ts'
import { cpuMicros, rssBytes, wait } from '../support/process.ts'
import { type RunningWorker, startWorker } from '../support/subject.ts'

const WORKERS = 2_000
const FEW_WORKERS = 4
const CONNECTIONS = 32
/** Requests per second while administration is timed. */
const STEADY_RATE = 1_000
const WARM_UP_SECONDS = 3
const NO_PROBES = { disable_health_check: true }
const SWEEP_SECONDS = 5
/** Administration is timed with the first policy that this build has. */
const POLICIES = ['cache_aware', 'least_load', 'round_robin']

interface Pair {
  readonly few: FleetGateway
  readonly many: FleetGateway
}

async function withPair<T>(
  worker: RunningWorker,
  policy: string,
  use: (pair: Pair) => Promise<T>,
): Promise<T> {
  const options = { kernel: { policy } }
  const few = await startFleetGateway(worker.ports.slice(0, FEW_WORKERS), NO_PROBES, options)
  try {
    const many = await startFleetGateway(worker.ports, NO_PROBES, options)
    try {
      return await use({ few, many })
    } finally {
      await many.stop()
    }
  } finally {
    await few.stop()
  }
}

/** At saturation: at low rates the idle time between requests would count too. */
async function measureCpu({ few, many }: Pair, policy: string, options: RunOptions): Promise<Figure[]> {
  const load = { connections: CONNECTIONS, rate: 0 }
  for (const gateway of [few, many]) {
    await runLoad('paced-load.ts', gateway, { ...load, seconds: WARM_UP_SECONDS })
  }
  const gateways = [
    { name: 'few', gateway: few },
    { name: 'many', gateway: many },
  ]
  const results = await measureRounds(
    gateways,
    options,
    ({ gateway }) => runLoad('paced-load.ts', gateway, { ...load, seconds: options.seconds }),
    `${policy}, `,
  )
  const fewMicros = cpuPerRequest(results('few'))
  const manyMicros = cpuPerRequest(results('many'))
  return [
    { name: `${policy}, CPU per request, ${FEW_WORKERS} workers`, unit: 'µs', values: fewMicros },
    { name: `${policy}, CPU per request, ${WORKERS} workers`, unit: 'µs', values: manyMicros },
    {
      name: `${policy}, CPU per request, ${WORKERS} / ${FEW_WORKERS} workers`,
      unit: '×',
      values: ratios(manyMicros, fewMicros),
      target: 1.2,
    },
  ]
}

async function measureAdministration(many: FleetGateway, { rounds, seconds }: RunOptions): Promise<Figure[]> {
  const load = { connections: CONNECTIONS, rate: STEADY_RATE, seconds }
  const samples = { readinessP50: [] as number[], readinessP99: [] as number[], list: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    // Sequential: the list of all workers delays probes on the same thread.
    const readiness = startProbe(many.port, '/readiness', 20)
    await runLoad('paced-load.ts', many, load)
    const readinessMs = await readiness.stop()
    samples.readinessP50.push(percentile(readinessMs, 50))
    samples.readinessP99.push(percentile(readinessMs, 99))
    const list = startProbe(many.port, '/workers', 250)
    await runLoad('paced-load.ts', many, load)
    samples.list.push(percentile(await list.stop(), 99))
  }
  return [
    { name: `registration of ${WORKERS} workers`, unit: 's', values: [many.registrationMs / 1_000] },
    { name: 'resident memory', unit: 'MB', values: [rssBytes(many.pid) / 1_000_000], target: 400 },
    {
      name: 'GET /readiness, p50',
      unit: 'ms',
      values: samples.readinessP50,
      note: `with a load of ${STEADY_RATE} chats/s, as the two below`,
    },
    { name: 'GET /readiness, p99', unit: 'ms', values: samples.readinessP99, target: 5 },
    { name: 'GET /workers, p99', unit: 'ms', values: samples.list, target: 200 },
  ]
}

/** CPU time of health checks of the whole fleet in an otherwise idle gateway. */
async function measureSweep(worker: RunningWorker, { rounds, progress }: RunOptions): Promise<Figure[]> {
  progress('health checks')
  const gateway = await startFleetGateway(worker.ports, { check_interval_secs: SWEEP_SECONDS })
  const cpuMs: number[] = []
  const readinessMs: number[] = []
  try {
    await wait(SWEEP_SECONDS * 1_000)
    for (let round = 0; round < Math.min(rounds, 3); round++) {
      const probesBefore = await countProbes(worker)
      const cpuBefore = cpuMicros(gateway.pid)
      const readiness = startProbe(gateway.port, '/readiness', 20)
      await wait(SWEEP_SECONDS * 1_000)
      readinessMs.push(percentile(await readiness.stop(), 99))
      const probes = (await countProbes(worker)) - probesBefore
      cpuMs.push(((cpuMicros(gateway.pid) - cpuBefore) / probes) * (WORKERS / 1_000))
    }
  } finally {
    await gateway.stop()
  }
  return [
    {
      name: `CPU of ${WORKERS} health probes`,
      unit: 'ms',
      values: cpuMs,
      note: `a sweep every ${SWEEP_SECONDS} s; includes the idle gateway and 50 readiness probes per second`,
    },
    { name: 'GET /readiness during the sweep, p99', unit: 'ms', values: readinessMs, target: 5 },
  ]
}

async function countProbes(worker: RunningWorker): Promise<number> {
  return Number(await (await fetch(`http://127.0.0.1:${worker.port}/probes`)).text())
}

async function run(options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker('worker.ts', WORKERS)
  const figures: Figure[] = []
  let isAdministrationTimed = false
  try {
    for (const policy of options.policies.length > 0 ? options.policies : POLICIES) {
      options.progress(`${policy}: registering ${WORKERS} workers`)
      try {
        await withPair(worker, policy, async (pair) => {
          figures.push(...(await measureCpu(pair, policy, options)))
          if (isAdministrationTimed) return
          isAdministrationTimed = true
          figures.push(...(await measureAdministration(pair.many, options)))
        })
      } catch (error) {
        if (!isUnavailable(error)) throw error
        figures.push(withheldFigure(policy, 'this build has no such policy'))
      }
    }
    return [...figures, ...(await measureSweep(worker, options))]
  } finally {
    await worker.child.stop()
  }
}

export const fleet2000: Scenario = {
  name: 'fleet-2000',
  question: 'what do 2,000 workers cost compared with 4?',
  run,
}
