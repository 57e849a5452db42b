/**
 * CPU time of one policy decision, on one thread without a network, and memory of the prefix table of cache_aware.
 * Run `node --conditions=weir-source bench/micro/cache-aware.ts`.
 */
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { CandidateView, PickRequest, Policy } from '#kernel'
import { chatRequest, PolicyThread, pickRequest } from '../../test/support/policy-fleet.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { candidatesOf } from '../support/candidates.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const ROUNDS = Number(flags.rounds)
const PICKS = 4_000
const CACHED_PROMPTS = 100_000

/** Available and idle workers. */
const fleetOf = (count: number) =>
  candidatesOf(Array.from({ length: count }, (_, slot) => workerEntry({ slot, models: ['m'] })))

const WORDS =
  'a gateway sends every prompt where most of it has been before unless that engine is busy'.split(' ')

/** A chat request with a prompt of that size in bytes, unique by its number, in a session of its own. */
function promptOf(number: number, bytes: number): PickRequest {
  const words = [`session ${number}`]
  let length = words[0].length
  for (let i = number; length < bytes; i = (Math.imul(i, 1_103_515_245) + 12_345) & 0x7fff_ffff) {
    const word = WORDS[i % WORDS.length]
    words.push(word)
    length += word.length + 1
  }
  return chatRequest(words.join(' ').slice(0, bytes), {
    headers: { 'x-weir-routing-key': `session-${number}` },
  })
}

/** CPU time of `work` in microseconds, independent of other load on the machine. */
function cpuMicros(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Mean CPU time of a pick in each round, in microseconds. */
function time(policy: Policy, view: CandidateView, requests: readonly PickRequest[]): number[] {
  return Array.from({ length: ROUNDS }, (_, round) => {
    const first = (round * PICKS) % requests.length
    const micros = cpuMicros(() => {
      for (let i = first; i < first + PICKS; i++) policy.pick(view, requests[i % requests.length])
    })
    return micros / PICKS
  })
}

const prompts = (from: number, count: number, bytes: number) =>
  Array.from({ length: count }, (_, i) => promptOf(from + i, bytes))

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Resident memory after garbage collection. */
function rssMiB(): number {
  collect()
  return process.memoryUsage.rss() / 1_048_576
}

function cacheAwareFigures(thread: PolicyThread): Figure[] {
  const policy = thread.policy('cache_aware')
  const hundred = fleetOf(100)
  const figures: Figure[] = []
  const beforeMiB = rssMiB()
  for (let i = 0; i < CACHED_PROMPTS; i++) policy.pick(hundred, promptOf(i, 4_096))
  figures.push({
    name: `memory of ${CACHED_PROMPTS} prompts of 4 KiB`,
    unit: 'MiB',
    values: [rssMiB() - beforeMiB],
    target: 80,
    note: 'resident; the table itself stays within 64 MiB by its setting',
  })
  const recent = prompts(CACHED_PROMPTS - 1_000, 1_000, 4_096)
  const figure = (name: string, values: number[], target: number) =>
    figures.push({ name, unit: 'µs', values, target })
  figure('pick, 4 KiB seen before, 100 workers', time(policy, hundred, recent), 20)
  const fresh = prompts(1_000_000, ROUNDS * PICKS, 4_096)
  figure('pick, 4 KiB never seen, 100 workers', time(policy, hundred, fresh), 20)
  figure('pick, 300 bytes, 100 workers', time(policy, hundred, prompts(0, 1_000, 300)), 20)
  figure('pick, 100 KiB, 100 workers', time(policy, hundred, prompts(0, 200, 102_400)), 200)
  figure('pick, 4 KiB, 2000 workers', time(policy, fleetOf(2_000), recent), 200)
  policy.close?.()
  return figures
}

function everyPolicy(thread: PolicyThread): Figure[] {
  const requests = prompts(0, 500, 4_096)
  return thread.registry.names().flatMap((name) =>
    [100, 2_000].map((workers) => {
      const policy = thread.policy(name)
      const view = fleetOf(workers)
      time(policy, view, requests)
      const values = time(policy, view, requests)
      policy.close?.()
      return { name: `${name}, ${workers} workers`, unit: 'µs', values, target: workers === 100 ? 20 : 200 }
    }),
  )
}

function ringFigure(thread: PolicyThread): Figure {
  const request = pickRequest({ headers: { 'x-weir-routing-key': 'key' } })
  const values = Array.from({ length: ROUNDS }, () => {
    const policy = thread.policy('consistent_hashing')
    const view = fleetOf(2_000)
    return cpuMicros(() => policy.pick(view, request)) / 1_000
  })
  return { name: 'first pick on a ring of 2000 workers', unit: 'ms', values, target: 50 }
}

const beforeMiB = rssMiB()
const thread = new PolicyThread()
const reserved: Figure = {
  name: 'memory reserved and not yet used',
  unit: 'MiB',
  values: [rssMiB() - beforeMiB],
  target: 4,
  note: 'resident, of 67 MiB of address space',
}
const figures = [reserved, ...cacheAwareFigures(thread), ...everyPolicy(thread), ringFigure(thread)]
const question = 'what does one choice cost, and what does cache_aware remember?'
console.log(renderTable({ scenario: 'cache-aware', question, figures }))
if (figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
