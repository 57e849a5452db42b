/** The measurement that the wasm scenarios share: gateways with and without modules, by turns, under the same load. */
import { type Figure, median, type RunOptions } from './figure.ts'
import type { GatewaySubject } from './gateway.ts'
import { compileGuests, type GuestName, type Guests } from './guests.ts'
import { type LoadResult, rotate, runLoad } from './load.ts'
import { type RunningWorker, startWorker } from './subject.ts'
import { type ModuleUse, startBareGateway, startWasmGateway, type WasmGateway } from './wasm-gateway.ts'

const CONNECTIONS = 64
const WARM_UP_SECONDS = 2
/** Turns that a gateway has at saturation in a round: what a machine does meanwhile meets all of them alike. */
const TURNS = 3
/** Requests per second at which a request hardly ever waits for another. */
export const ALONE_RATE = 1_000

/** Label and modules of each gateway that is compared with the bare one. */
export type Variants = Readonly<Record<string, readonly ModuleUse[]>>

export interface Measured {
  /** CPU per request at saturation, µs, a value per round; `bare` is one of the labels. */
  cpu(label: string): readonly number[]
  /** What a variant adds to the bare gateway, round by round, µs. */
  addedCpu(label: string): number[]
  perSecond(label: string): readonly number[]
  /** Added latency at the common rate, ms. */
  addedLatency(label: string, percentile: 'p50Micros' | 'p99Micros'): number[]
  /** The same where a request hardly ever waits for another, ms. */
  addedLatencyAlone(label: string, percentile: 'p50Micros' | 'p99Micros'): number[]
  /** Requests per second at which latencies were taken. */
  readonly rate: number
  readonly failedCalls: number
}

export async function withGuests<T>(
  names: readonly GuestName[],
  progress: (text: string) => void,
  use: (guests: Guests, worker: RunningWorker) => Promise<T>,
): Promise<T> {
  progress('compiling modules')
  const guests = compileGuests(names)
  try {
    const worker = await startWorker()
    try {
      return await use(guests, worker)
    } finally {
      await worker.child.stop()
    }
  } finally {
    guests.remove()
  }
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

type Results = ReadonlyMap<string, readonly LoadResult[]>

async function measureGateways(
  gateways: ReadonlyMap<string, GatewaySubject | WasmGateway>,
  bytes: number,
  options: RunOptions,
): Promise<Measured> {
  const load = { connections: CONNECTIONS, bytes }
  for (const gateway of gateways.values()) {
    await runLoad('paced-load.ts', gateway, { ...load, rate: 0, seconds: WARM_UP_SECONDS })
  }
  const turns = { ...options, rounds: options.rounds * TURNS }
  const saturated = await runRounds('saturation', gateways, { ...load, rate: 0 }, turns)
  const slowest = Math.min(...[...saturated.values()].map((results) => median(results.map(perSecondOf))))
  const rate = Math.round(slowest / 2)
  const paced = await runRounds(`${rate}/s`, gateways, { ...load, rate }, options)
  const alone = await runRounds(`${ALONE_RATE}/s`, gateways, { ...load, rate: ALONE_RATE }, options)
  const failedCalls = await countFailures(gateways)
  const cpu = (label: string) => inRounds(of(saturated, label), cpuOf)
  return {
    rate,
    failedCalls,
    cpu,
    addedCpu: (label) => cpu(label).map((value, round) => value - cpu('bare')[round]),
    perSecond: (label) => inRounds(of(saturated, label), (turns) => mean(turns.map(perSecondOf))),
    addedLatency: (label, percentile) => added(paced, label, percentile),
    addedLatencyAlone: (label, percentile) => added(alone, label, percentile),
  }
}

/** Round by round, ms. */
function added(results: Results, label: string, percentile: 'p50Micros' | 'p99Micros'): number[] {
  const bare = of(results, 'bare')
  return of(results, label).map(
    (result, round) => (result.report[percentile] - bare[round].report[percentile]) / 1_000,
  )
}

async function runRounds(
  title: string,
  gateways: ReadonlyMap<string, GatewaySubject>,
  load: Readonly<Record<string, number>>,
  { rounds, seconds, progress }: RunOptions,
): Promise<Results> {
  const results = new Map<string, LoadResult[]>([...gateways.keys()].map((label) => [label, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [label, gateway] of rotate([...gateways], round)) {
      progress(`${title}, round ${round + 1}/${rounds}: ${label}`)
      results.get(label)?.push(await runLoad('paced-load.ts', gateway, { ...load, seconds }))
    }
  }
  return results
}

/** @throws when a gateway with modules never called them: its figures would be those of a bare one */
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

/** A value for each round. */
function inRounds(
  results: readonly LoadResult[],
  value: (turns: readonly LoadResult[]) => number,
): readonly number[] {
  const rounds = Array.from({ length: results.length / TURNS }, (_, round) => round * TURNS)
  return rounds.map((from) => value(results.slice(from, from + TURNS)))
}

/** Microseconds per request of all turns together. */
function cpuOf(turns: readonly LoadResult[]): number {
  const sum = (part: (turn: LoadResult) => number) => turns.reduce((all, turn) => all + part(turn), 0)
  return sum(({ cpuMicros }) => cpuMicros) / sum(({ report }) => report.requests)
}

const mean = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0) / values.length

const of = (results: Results, label: string): readonly LoadResult[] => results.get(label) ?? []

const perSecondOf = (result: LoadResult): number => result.report.perSecond

/** The rows that every wasm scenario has: per label, then failures. */
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
      note: `CPU and throughput at saturation with ${CONNECTIONS} connections, ${TURNS} turns a round, one data thread and one pool thread, which share this machine with client and worker; latencies at ${measured.rate} requests/s`,
    },
  ]
}
