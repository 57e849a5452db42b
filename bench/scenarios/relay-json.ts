/** Non-streamed chats: CPU time at saturation, latency at half of that rate. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import { type Figure, median, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { configurationsOf, startGateway } from '../support/gateway.ts'
import { configurations, type GatewayFeatures } from '../support/gateway-config.ts'
import {
  addedMs,
  clientBottleneck,
  cpuPerRequest,
  type LoadResult,
  measureRounds,
  type RoundResults,
  runLoad,
} from '../support/load.ts'
import { type Subject, startBareRelay } from '../support/subject.ts'
import { withSubjects } from '../support/subjects.ts'

const CONNECTIONS = 32
/** If the p99 of the direct path at half load is above this, the machine was busy and latencies mean nothing. */
const QUIET_P99_MS = 5

interface JsonRelay {
  /** Length of each request body, in bytes. */
  readonly bodyBytes: number
  /** Highest accepted CPU time per request, as a multiple of nginx's. */
  readonly cpuTarget: number
  features?(checkout: typeof configurations): GatewayFeatures
  /** Number of workers. Default 1. */
  readonly workers?: number
}

function measureJsonRelay(relay: JsonRelay, options: RunOptions): Promise<Figure[]> {
  const { seconds } = options
  return withSubjects(
    async (subjects) => {
      const load = { connections: CONNECTIONS, bytes: relay.bodyBytes }
      const saturated = await saturate(subjects, load, options)
      const bottleneck = clientBottleneck(saturated('gateway'))
      const rate = Math.round(median(perSecond(saturated('gateway'))) / 2)
      const paced =
        bottleneck !== undefined
          ? null
          : await measureRounds(
              subjects,
              options,
              (subject) => runLoad('paced-load.ts', subject, { ...load, rate, seconds }),
              `${rate}/s, `,
            )
      const withheld = bottleneck ?? busyMachine(paced)
      return [
        ...cpuFigures(saturated, relay.cpuTarget),
        ...throughputFigures(saturated),
        ...latencyFigures(withheld === undefined ? paced : null, rate, withheld),
      ]
    },
    { features: relay.features?.(configurations), workers: relay.workers },
  )
}

/** All subjects and a bare relay of the same worker. */
async function saturate(
  subjects: readonly Subject[],
  load: Readonly<Record<string, number>>,
  options: RunOptions,
): Promise<RoundResults> {
  const bare = await startBareRelay(subjects[0].port)
  const all = [...subjects, bare]
  const run = (subject: Subject, seconds: number) => runLoad('json-load.ts', subject, { ...load, seconds })
  try {
    for (const subject of all) await run(subject, 2)
    return await measureRounds(all, options, (subject) => run(subject, options.seconds), 'saturation, ')
  } finally {
    await bare.stop()
  }
}

function cpuFigures(results: RoundResults, target: number): Figure[] {
  const nginx = cpuPerRequest(results('nginx'))
  const gateway = cpuPerRequest(results('gateway'))
  const bare = cpuPerRequest(results('bare relay'))
  return [
    { name: 'CPU per request, bare relay', unit: 'µs', values: bare },
    { name: 'CPU per request, nginx', unit: 'µs', values: nginx },
    { name: 'CPU per request, gateway', unit: 'µs', values: gateway },
    { name: 'CPU per request, gateway / nginx', unit: '×', values: ratios(gateway, nginx), target },
    { name: 'CPU per request, gateway / bare relay', unit: '×', values: ratios(gateway, bare) },
  ]
}

function throughputFigures(results: RoundResults): Figure[] {
  return ['direct', 'nginx', 'gateway'].map((name) => {
    const withheld = clientBottleneck(results(name))
    const values = withheld === undefined ? perSecond(results(name)) : []
    return { name: `throughput, ${name}`, unit: '1/s', values, withheld }
  })
}

function busyMachine(paced: RoundResults | null): string | undefined {
  const directMs = median((paced?.('direct') ?? []).map(({ report }) => report.p99Micros / 1_000))
  if (paced === null || directMs <= QUIET_P99_MS) return undefined
  return `the machine was busy: p99 of the direct path alone was ${directMs.toFixed(1)} ms`
}

function latencyFigures(paced: RoundResults | null, rate: number, withheld: string | undefined): Figure[] {
  const added = (percentile: 'p50' | 'p99', name: 'nginx' | 'gateway'): Figure => ({
    name: `added ${percentile}, ${name}`,
    unit: 'ms',
    values: paced === null ? [] : addedMs(paced(name), paced('direct'), `${percentile}Micros`),
    withheld,
  })
  const note = `at ${rate} requests/s for every subject, half of the gateway's rate at saturation`
  return [
    added('p50', 'nginx'),
    added('p99', 'nginx'),
    added('p50', 'gateway'),
    { ...added('p99', 'gateway'), target: 2, note },
  ]
}

function perSecond(results: readonly LoadResult[]): number[] {
  return results.map(({ report }) => report.perSecond)
}

/** @param question which the figures answer */
function jsonRelay(name: string, question: string, relay: JsonRelay): Scenario {
  return {
    name,
    question,
    run: (options) => measureJsonRelay(relay, options),
    compare: (options) =>
      compareCheckouts(
        {
          start: async (root, { ports }) =>
            startGateway({ root, workerPorts: ports, ...relay.features?.(await configurationsOf(root)) }),
          client: 'json-load.ts',
          load: { connections: CONNECTIONS, bytes: relay.bodyBytes },
          workers: relay.workers,
        },
        options,
      ),
  }
}

export const relayJson = jsonRelay('relay-json', 'what does a 250-byte chat on 32 connections cost?', {
  bodyBytes: 250,
  cpuTarget: 2,
})

export const relayJson100k = jsonRelay(
  'relay-json-100k',
  'what does a chat with a 100 KB prompt on 32 connections cost?',
  { bodyBytes: 100_000, cpuTarget: 2.5 },
)

export const relayJsonFull = jsonRelay(
  'relay-json-full',
  'what does a 250-byte chat cost with cache_aware, retries, breakers, limits and metrics?',
  // With one worker the policy has no choice.
  { bodyBytes: 250, cpuTarget: 2.3, workers: 4, features: ({ production }) => production() },
)
