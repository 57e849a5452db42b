/** Measures gateways with and without modules under the same load. */
import { type Figure, median, type RunOptions } from './figure.ts'
import type { GatewaySubject } from './gateway.ts'
import { withGuests } from './guests.ts'
import { addedMs, type LoadResult, measureRounds, type RoundResults, runLoad } from './load.ts'
import { type ModuleUse, startBareGateway, startWasmGateway, type WasmGateway } from './wasm-gateway.ts'

export const CONNECTIONS = 64
const WARM_UP_SECONDS = 2
/** Measurements of each gateway at saturation per round; they spread disturbances over all gateways. */
const TURNS = 3
/** Requests per second at which requests rarely wait for each other. */
export const ALONE_RATE = 1_000

/** Modules by label of each gateway that is compared with the bare one. */
export type Variants = Readonly<Record<string, readonly ModuleUse[]>>

export interface Measured {
  /** CPU per request at saturation, in µs per round; `bare` is one of the labels. */
  cpu(label: string): readonly number[]
  /** CPU per request above that of the bare gateway, in µs per round. */
  addedCpu(label: string): number[]
  perSecond(label: string): readonly number[]
  /** Added latency at `rate`, in ms. */
  addedLatency(label: string, percentile: 'p50Micros' | 'p99Micros'): number[]
  /** Added latency at `ALONE_RATE`, in ms. */
  addedLatencyAlone(label: string, percentile: 'p50Micros' | 'p99Micros'): number[]
  /** Half of the slowest gateway's requests per second at saturation. */
  readonly rate: number
  readonly failedCalls: number
}

/** @param bytes length of each request body */
export function measureModules(variants: Variants, bytes: number, options: RunOptions): Promise<Measured> {
  const names = new Set(Object.values(variants).flatMap((modules) => modules.map(({ guest }) => guest)))
  return withGuests([...names], options.progress, async (guests, worker) => {
    const gateways = new Map<string, GatewaySubject | WasmGateway>()
    try {
      gateways.set('bare', await startBareGateway(worker.port))
      for (const [label, modules] of Object.entries(variants)) {
        gateways.set(label, await startWasmGateway({ workerPort: worker.port, guests, modules }))
      }
      return await measureGateways(gateways, bytes, options)
    } finally {
      for (const gateway of gateways.values()) await gateway.stop()
    }
  })
}

async function measureGateways(
  gateways: ReadonlyMap<string, GatewaySubject | WasmGateway>,
  bytes: number,
  options: RunOptions,
): Promise<Measured> {
  const variants = [...gateways].map(([name, gateway]) => ({ name, gateway }))
  const run = (gateway: GatewaySubject, rate: number, seconds: number) =>
    runLoad('paced-load.ts', gateway, { connections: CONNECTIONS, bytes, rate, seconds })
  for (const gateway of gateways.values()) await run(gateway, 0, WARM_UP_SECONDS)
  const measureAt = (rate: number, title: string, rounds = options.rounds) =>
    measureRounds(
      variants,
      { ...options, rounds },
      ({ gateway }) => run(gateway, rate, options.seconds),
      `${title}, `,
    )
  const saturated = await measureAt(0, 'saturation', options.rounds * TURNS)
  const rates = [...gateways.keys()].map((label) => median(saturated(label).map(perSecondOf)))
  const rate = Math.round(Math.min(...rates) / 2)
  const paced = await measureAt(rate, `${rate}/s`)
  const alone = await measureAt(ALONE_RATE, `${ALONE_RATE}/s`)
  const failedCalls = await countFailures(gateways)
  const cpu = (label: string) => inRounds(saturated(label), cpuOf)
  const added = (results: RoundResults, label: string, percentile: string) =>
    addedMs(results(label), results('bare'), percentile)
  return {
    rate,
    failedCalls,
    cpu,
    addedCpu: (label) => cpu(label).map((value, round) => value - cpu('bare')[round]),
    perSecond: (label) => inRounds(saturated(label), (turns) => mean(turns.map(perSecondOf))),
    addedLatency: (label, percentile) => added(paced, label, percentile),
    addedLatencyAlone: (label, percentile) => added(alone, label, percentile),
  }
}

/** @throws if a gateway never called its modules: its figures would be those of the bare gateway */
async function countFailures(gateways: ReadonlyMap<string, GatewaySubject | WasmGateway>): Promise<number> {
  let failures = 0
  for (const [label, gateway] of gateways) {
    if (!('calls' in gateway)) continue
    const { succeeded, failed } = await gateway.calls()
    if (succeeded + failed === 0 && label !== 'no modules') throw new Error(`${label}: no module was called`)
    failures += failed
  }
  return failures
}

/** Combines the measurements of each round. */
function inRounds(
  results: readonly LoadResult[],
  value: (turns: readonly LoadResult[]) => number,
): readonly number[] {
  const rounds = Array.from({ length: results.length / TURNS }, (_, round) => round * TURNS)
  return rounds.map((from) => value(results.slice(from, from + TURNS)))
}

/** Microseconds per request over all measurements of a round. */
function cpuOf(turns: readonly LoadResult[]): number {
  const sum = (part: (turn: LoadResult) => number) => turns.reduce((all, turn) => all + part(turn), 0)
  return sum(({ cpuMicros }) => cpuMicros) / sum(({ report }) => report.requests)
}

const mean = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0) / values.length

const perSecondOf = (result: LoadResult): number => result.report.perSecond

/** Figures of every wasm scenario: per label, then failures. */
export function commonFigures(measured: Measured, labels: readonly string[]): Figure[] {
  return [
    ...['bare', ...labels].map((label) => ({
      name: `CPU per request, ${label}`,
      unit: 'µs',
      values: measured.cpu(label),
    })),
    ...['bare', ...labels].map((label) => ({
      name: `throughput, ${label}`,
      unit: '1/s',
      values: measured.perSecond(label),
    })),
    ...labels.flatMap((label) => [
      { name: `added CPU, ${label}`, unit: 'µs', values: measured.addedCpu(label) },
      { name: `added p50, ${label}`, unit: 'ms', values: measured.addedLatency(label, 'p50Micros') },
      { name: `added p99, ${label}`, unit: 'ms', values: measured.addedLatency(label, 'p99Micros') },
    ]),
    {
      name: 'failed module calls',
      unit: '',
      values: [measured.failedCalls],
      target: 0,
      note: `CPU and throughput at saturation with ${CONNECTIONS} connections, ${TURNS} measurements per round, one data thread and one pool thread, on one machine with client and worker; latencies at ${measured.rate} requests/s`,
    },
  ]
}
