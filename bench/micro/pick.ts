/**
 * CPU time of one pick from the model name to the counted attempt, and of its release, for every policy with small and
 * large fleets, on one thread without a network. Run `npm run build`, then `node bench/micro/pick.ts`;
 * `node --conditions=weir-source bench/micro/pick.ts` measures the sources. `cache-aware.ts` measures policies alone.
 */
import { parseArgs } from 'node:util'
import { policyAdder, type Registry } from '../support/add-policies.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** Repeatable; default: all. */
    policy: { type: 'string', multiple: true },
  },
})
const ROUNDS = Number(flags.rounds)
const PICKS = 5_000
const SAMPLES = 20_000
const FLEETS = [4, 100, 2_000]
/** Policies that read prompts of 4 KB may take longer. */
const READERS = ['cache_aware']
/** Highest accepted microseconds per pick by fleet: of policies that read the prompt, and of the others. */
const TARGETS: Readonly<Record<number, readonly [reader: number, other: number]>> = {
  4: [20, 5],
  100: [20, 5],
  2000: [200, 20],
}
const isSource = process.execArgv.some((argument) => argument.includes('source'))
const [ROOT, ENDING] = isSource ? ['../..', 'ts'] : ['../../dist', 'js']

/** Imported parts of the build. */
interface Attempt {
  failed(): void
  succeeded(): void
  release(): void
}
interface Balance {
  pick(ctx: object, model: string, options?: object): Attempt
  attempt(worker: object): Attempt
  setStatus(slot: number, status: string): void
  readonly registry: Registry & { names(): readonly string[] }
  close(): void
}
type Make<Made> = new (...parameters: unknown[]) => Made

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(`${ROOT}/${file}.${ENDING}`, import.meta.url).href)) as Record<string, unknown>
}

const { ThreadBalance } = (await load('kernel/balance/thread-balance')) as { ThreadBalance: Make<Balance> }
const { Counters, createCounters } = (await load('kernel/balance/counters')) as {
  Counters: Make<object>
  createCounters: (workers: number, threads: number) => SharedArrayBuffer
}
const { ThreadMetrics } = (await load('kernel/observe/metrics')) as { ThreadMetrics: Make<object> }
const addPolicies = await policyAdder(load)

function workerEntry(slot: number) {
  return {
    slot,
    id: `worker-${slot}`,
    url: `http://10.0.${slot >> 8}.${slot & 255}:8000`,
    workerType: 'regular',
    connectionMode: 'http',
    runtimeType: 'sglang',
    apis: [],
    isExternal: false,
    models: [{ id: 'm' }],
    apiKey: null,
    priority: 50,
    cost: 1,
    labels: {},
    bootstrapPort: null,
    bootstrapHost: null,
    dataParallel: null,
    resilience: null,
    httpPool: null,
    revision: 1,
  }
}

const engineLoad = (slot: number, atMs: number) => ({
  queuedTokens: slot % 7,
  usedTokens: slot * 10,
  kvUsage: (slot % 10) / 10,
  tokensPerSecond: 2_000,
  atMs,
})

interface Fleet {
  readonly balance: Balance
  readonly workers: readonly object[]
}

/** A ready fleet with some requests in flight. */
function open(policy: string, count: number, hasLoads = false): Fleet {
  const workers = Array.from({ length: count }, (_, slot) => workerEntry(slot))
  // Reports must not expire during the run.
  const inOneHour = Date.now() + 3_600_000
  const bySlot = hasLoads ? workers.map(({ slot }) => engineLoad(slot, inOneHour)) : []
  const metrics = new ThreadMetrics(() => {})
  const shared = (_name: string, bytes: number) => new SharedArrayBuffer(bytes)
  const balance = new ThreadBalance({
    counters: new Counters(createCounters(4_096, 1), 0),
    table: { current: { workers }, onChange: () => {} },
    defaultPolicy: policy,
    breaker: { enabled: true, failureThreshold: 10, successThreshold: 3, openMs: 600_000, halfOpenProbes: 1 },
    metrics,
    shared,
    loads: { current: { bySlot } },
  })
  addPolicies(balance.registry, { shared, metrics, maxWorkers: 4_096 })
  for (const worker of workers) {
    balance.setStatus(worker.slot, 'ready')
    for (let i = 0; i < worker.slot % 5; i++) balance.attempt(worker)
  }
  return { balance, workers }
}

function requestOf(number: number): object {
  const content = `session ${number}: ${'a question about routing '.repeat(40)}`
  const body = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }))
  const key = `session-${number}`
  const header = (name: string) => (name === 'x-weir-routing-key' ? key : undefined)
  return { rawBody: body, header, hooks: { onPick: null } }
}

const requests = Array.from({ length: 500 }, (_, number) => requestOf(number))

function run(balance: Balance, times: number, options?: object): void {
  for (let i = 0; i < times; i++) {
    const attempt = balance.pick(requests[i % requests.length], 'm', options)
    attempt.succeeded()
    attempt.release()
  }
}

/** Mean CPU time of each round, in microseconds. */
function time({ balance }: Fleet, options?: object): number[] {
  run(balance, PICKS, options)
  return Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    run(balance, PICKS, options)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / PICKS
  })
}

/** 99th percentile of the CPU time of a pick, in microseconds, including the clock reads. */
function slowest({ balance }: Fleet): number[] {
  return Array.from({ length: ROUNDS }, () => {
    const micros = new Float64Array(SAMPLES / ROUNDS)
    for (let i = 0; i < micros.length; i++) {
      const before = process.cpuUsage()
      const attempt = balance.pick(requests[i % requests.length], 'm')
      const { user, system } = process.cpuUsage(before)
      micros[i] = user + system
      attempt.release()
    }
    return micros.sort()[Math.floor(micros.length * 0.99)]
  })
}

function policyFigures(policy: string): Figure[] {
  return FLEETS.flatMap((count) => {
    const fleet = open(policy, count, true)
    const target = TARGETS[count][READERS.includes(policy) ? 0 : 1]
    const figures: Figure[] = [
      { name: `${policy}, ${count} workers`, unit: 'µs', values: time(fleet), target },
    ]
    if (count === 2_000) {
      figures.push({
        name: `${policy}, ${count} workers, p99`,
        unit: 'µs',
        values: slowest(fleet),
        target: 200,
      })
    }
    fleet.balance.close()
    return figures
  })
}

/** Unusual cases must not cost much more. */
function specialFigures(): Figure[] {
  const figure = (name: string, fleet: Fleet, target: number, options?: object): Figure => {
    const values = time(fleet, options)
    fleet.balance.close()
    return { name: `round_robin, 2000 workers, ${name}`, unit: 'µs', values, target }
  }
  const broken = open('round_robin', 2_000)
  for (const worker of broken.workers.slice(0, 200)) {
    for (let i = 0; i < 10; i++) broken.balance.attempt(worker).failed()
  }
  const excluded = [3, 500, 1_000, 1_999]
  return [
    figure('200 breakers open', broken, 40),
    figure('4 slots tried already', open('round_robin', 2_000), 40, { excluded }),
    figure('with a report', open('round_robin', 2_000), 60, { report: true }),
  ]
}

const names = flags.policy ?? open('random', 1).balance.registry.names()
const question = 'what does a pick cost, from the name of the model to the release of the attempt?'
const figures = [...names.flatMap(policyFigures), ...(flags.policy === undefined ? specialFigures() : [])]
console.log(renderTable({ scenario: 'pick', question, figures }))
if (figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
