/** Non-streamed chats: CPU time at saturation, latency at half of that rate. */
import {
  againstFigures,
  type Figure,
  median,
  type RunOptions,
  ratios,
  type Scenario,
  withheldFigure,
} from '../support/figure.ts'
import { type GatewayFeatures, isUnavailable } from '../support/gateway.ts'
import {
  addedMs,
  clientBottleneck,
  cpuPerRequest,
  type LoadResult,
  measureRounds,
  type RoundResults,
  runLoad,
} from '../support/load.ts'
import { withSubjects } from '../support/subjects.ts'

const CONNECTIONS = 32
/** If the p99 of the direct path at half load is above this, the machine was busy and latencies mean nothing. */
const QUIET_P99_MS = 5

interface JsonRelay {
  /** Length of each request body, in bytes. */
  readonly bodyBytes: number
  /** Highest accepted CPU time per request, as a multiple of nginx's. */
  readonly cpuTarget: number
  readonly features?: GatewayFeatures
  /** Number of workers. Default 1. */
  readonly workers?: number
}

function measureJsonRelay(relay: JsonRelay, options: RunOptions): Promise<Figure[]> {
  const { seconds } = options
  return withSubjects(
    async (subjects) => {
      const load = { connections: CONNECTIONS, bytes: relay.bodyBytes }
      for (const subject of subjects) await runLoad('json-load.ts', subject, { ...load, seconds: 2 })
      const saturated = await measureRounds(
        subjects,
        options,
        (subject) => runLoad('json-load.ts', subject, { ...load, seconds }),
        'saturation, ',
      )
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
    { ...relay, against: options.against },
  )
}

function cpuFigures(results: RoundResults, target: number): Figure[] {
  const nginx = cpuPerRequest(results('nginx'))
  const gateway = cpuPerRequest(results('gateway'))
  return [
    { name: 'CPU per request, nginx', unit: 'µs', values: nginx },
    { name: 'CPU per request, gateway', unit: 'µs', values: gateway },
    { name: 'CPU per request, gateway / nginx', unit: '×', values: ratios(gateway, nginx), target },
    ...againstFigures('CPU per request', gateway, cpuPerRequest(results('before'))),
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

export const relayJson: Scenario = {
  name: 'relay-json',
  question: 'what does a 250-byte chat on 32 connections cost?',
  run: (options) => measureJsonRelay({ bodyBytes: 250, cpuTarget: 2 }, options),
}

export const relayJson100k: Scenario = {
  name: 'relay-json-100k',
  question: 'what does a chat with a 100 KB prompt on 32 connections cost?',
  run: (options) => measureJsonRelay({ bodyBytes: 100_000, cpuTarget: 2.5 }, options),
}

const PRODUCTION: JsonRelay = {
  bodyBytes: 250,
  cpuTarget: 2.3,
  // With one worker the policy has no choice.
  workers: 4,
  features: {
    kernel: { policy: 'cache_aware', retry: { maxAttempts: 5 }, breaker: { enabled: true } },
    plugins: {
      // Limits that reject nothing: only the accounting is measured.
      limits: {
        maxConcurrentRequests: 10_000,
        queueSize: 1_000,
        tenants: { default: { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000 } },
      },
    },
  },
}

export const relayJsonFull: Scenario = {
  name: 'relay-json-full',
  question: 'what does a 250-byte chat cost with cache_aware, retries, breakers, limits and metrics?',
  async run(options) {
    try {
      return await measureJsonRelay(PRODUCTION, options)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      const reason = 'this build lacks cache_aware or the limits plugin'
      return [withheldFigure('CPU per request, gateway / nginx', reason)]
    }
  },
}
