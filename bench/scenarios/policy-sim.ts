/** Routing policies compared on engines with prefix caches and queues. */
import { type Figure, type RunOptions, type Scenario, withheldFigure } from '../support/figure.ts'
import { isUnavailable, startGateway } from '../support/gateway.ts'
import { OUTPUT_TOKENS } from '../support/policy-workload.ts'
import { startScript } from '../support/process.ts'
import { startSimEngines } from '../support/sim-engines.ts'

const ENGINES = 8
const REQUESTS_PER_SECOND = 80
const MIN_SECONDS = 20
const MAX_ROUNDS = 3

/** Policies that need no routing key; without one the others use a single engine. */
const POLICIES = [
  'round_robin',
  'least_load',
  'cache_aware',
  'random',
  'power_of_two',
  'prefix_hash',
  'bucket',
]

type Report = Readonly<Record<string, number>>

const COLUMNS: readonly (readonly [key: string, label: string, unit: string])[] = [
  ['ok', 'completed', ''],
  ['errors', 'errors', ''],
  ['perSecond', 'throughput', '1/s'],
  ['ttftMeanMs', 'TTFT mean', 'ms'],
  ['ttftP50Ms', 'TTFT p50', 'ms'],
  ['ttftP90Ms', 'TTFT p90', 'ms'],
  ['ttftP99Ms', 'TTFT p99', 'ms'],
  ['itlP50Ms', 'ITL p50', 'ms'],
  ['e2eP50Ms', 'E2E p50', 'ms'],
  ['e2eP99Ms', 'E2E p99', 'ms'],
  ['hitRate', 'prefix hit rate', ''],
]

/** Starts new engines and a new gateway, so that no policy uses the caches of another. */
async function runOnce(policy: string, seed: number, { seconds, shared }: RunOptions): Promise<Report> {
  const engines = await startSimEngines(ENGINES, OUTPUT_TOKENS)
  try {
    const gateway = await startGateway({ workerPorts: engines.ports, kernel: { policy } })
    try {
      const options = { port: gateway.port, rate: REQUESTS_PER_SECOND, seconds, shared, seed }
      const client = startScript('policy-load.ts', options)
      const report = (await client.report()) as Report
      await client.stop()
      return report
    } finally {
      await gateway.stop()
    }
  } finally {
    await engines.stop()
  }
}

async function run(options: RunOptions): Promise<Figure[]> {
  const policies = options.policies.length > 0 ? options.policies : POLICIES
  const rounds = Math.min(options.rounds, MAX_ROUNDS)
  const seconds = Math.max(options.seconds, MIN_SECONDS)
  const results = new Map<string, Report[]>(policies.map((policy) => [policy, []]))
  const missing: Figure[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [policy, reports] of results) {
      options.progress(`round ${round + 1}/${rounds}: ${policy}`)
      try {
        reports.push(await runOnce(policy, round + 1, { ...options, seconds }))
      } catch (error) {
        if (!isUnavailable(error)) throw error
        results.delete(policy)
        missing.push(withheldFigure(policy, 'this build has no such policy'))
      }
    }
  }
  return [
    ...[...results].flatMap(([policy, reports]) => policyFigures(policy, reports)),
    ...missing,
    ...comparisons(results, options.shared),
  ]
}

function policyFigures(policy: string, reports: readonly Report[]): Figure[] {
  return COLUMNS.map(([key, label, unit]) => ({
    name: `${policy}, ${label}`,
    unit,
    values: reports.map((report) => report[key]),
    target: key === 'errors' ? 0 : undefined,
  }))
}

/** Compares round by round: the same round has the same arrivals for every policy. */
function comparisons(results: ReadonlyMap<string, readonly Report[]>, shared: number): Figure[] {
  const cacheAware = results.get('cache_aware') ?? []
  const isShared = shared > 0
  const ratio = (label: string, key: string, base: string, target: number): Figure => {
    const name = `${label}, cache_aware / ${base}`
    const against = results.get(base) ?? []
    if (cacheAware.length === 0 || against.length === 0)
      return withheldFigure(name, 'one of the two did not run')
    const values = cacheAware.map((report, round) => report[key] / against[round][key])
    return { name, unit: '×', values, target }
  }
  const note = `${ENGINES} engines, ${REQUESTS_PER_SECOND} arrivals/s, ${OUTPUT_TOKENS} tokens each, ${Math.round(shared * 100)} % with one of 100 system prompts of 200 words`
  const hitRate = cacheAware.map((report) => report.hitRate)
  return [
    { ...ratio('TTFT mean', 'ttftMeanMs', 'round_robin', isShared ? 0.7 : 1.05), note },
    ratio('TTFT p50', 'ttftP50Ms', 'round_robin', isShared ? 0.8 : 1.05),
    ratio('E2E p99', 'e2eP99Ms', 'least_load', 1.1),
    ...(isShared && hitRate.length > 0
      ? [{ name: 'prefix hit rate, cache_aware', unit: '', values: hitRate, atLeast: 0.6 }]
      : []),
  ]
}

export const policySim: Scenario = {
  name: 'policy-sim',
  question: 'which latencies and hit rates does each routing policy reach on engines with prefix caches?',
  run,
}
