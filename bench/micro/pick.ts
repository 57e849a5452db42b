/**
 * CPU time of one pick from the model name to the counted attempt, and of its release, for every policy with small and
 * large fleets, on one thread without a network. Run `node --conditions=weir-source bench/micro/pick.ts`. `cache-aware.ts`
 * measures policies alone.
 */
import { parseArgs } from 'node:util'
import type { EngineLoad, RelayContext } from '#kernel'
import { Counters, createCounters } from '../../kernel/balance/counters.ts'
import type { PickOptions, WorkerBalance } from '../../kernel/balance/worker-balance.ts'
import { defaultBreaker, pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
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
const engineLoad = (slot: number, atMs: number): EngineLoad => ({
  queuedTokens: slot % 7,
  usedTokens: slot * 10,
  kvUsage: (slot % 10) / 10,
  tokensPerSecond: 2_000,
  atMs,
})

/** A ready fleet with some requests in flight. */
function open(policy: string, count: number, hasLoads = false): TestBalance {
  const workers = Array.from({ length: count }, (_, slot) => workerEntry({ slot, models: ['m'] }))
  // Reports must not expire during the run.
  const inOneHour = Date.now() + 3_600_000
  const bySlot = hasLoads ? workers.map(({ slot }) => engineLoad(slot, inOneHour)) : []
  const fleet = new TestBalance({
    counters: new Counters(createCounters(4_096, 1), 0),
    defaultPolicy: policy,
    breaker: { ...defaultBreaker, openMs: 600_000 },
    loads: { current: { bySlot } },
  })
  fleet.register(...workers)
  for (const worker of workers) for (let i = 0; i < worker.slot % 5; i++) fleet.balance.attempt(worker)
  return fleet
}

function requestOf(number: number): RelayContext {
  const content = `session ${number}: ${'a question about routing '.repeat(40)}`
  const rawBody = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }))
  return { ...pickContext({ 'x-weir-routing-key': `session-${number}` }), rawBody }
}

const requests = Array.from({ length: 500 }, (_, number) => requestOf(number))

function run(balance: WorkerBalance, times: number, options?: PickOptions): void {
  for (let i = 0; i < times; i++) {
    const attempt = balance.pick(requests[i % requests.length], 'm', options)
    attempt.succeeded()
    attempt.release()
  }
}

/** Mean CPU time of each round, in microseconds. */
function time({ balance }: TestBalance, options?: PickOptions): number[] {
  run(balance, PICKS, options)
  return Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    run(balance, PICKS, options)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / PICKS
  })
}

/** 99th percentile of the CPU time of a pick, in microseconds, including the clock reads. */
function slowest({ balance }: TestBalance): number[] {
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
  const figure = (name: string, fleet: TestBalance, target: number, options?: PickOptions): Figure => {
    const values = time(fleet, options)
    fleet.balance.close()
    return { name: `round_robin, 2000 workers, ${name}`, unit: 'µs', values, target }
  }
  const broken = open('round_robin', 2_000)
  for (const worker of broken.balance.workers.slice(0, 200)) {
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
