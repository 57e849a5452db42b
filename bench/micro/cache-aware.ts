/**
 * CPU time of one policy decision, on one thread without a network, and memory of the prefix table of cache_aware.
 * Run `npm run build`, then `node bench/micro/cache-aware.ts`.
 */
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { policyAdder, type Registry } from '../support/add-policies.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** Measures the sources instead of dist. */
    source: { type: 'boolean', default: false },
  },
})
const ROUNDS = Number(flags.rounds)
const PICKS = 4_000
const CACHED_PROMPTS = 100_000
const [ROOT, ENDING] = flags.source ? ['../..', 'ts'] : ['../../dist', 'js']

/** Imported parts of the build. */
interface Policy {
  pick(candidates: View, request: object): number
  close?(): void
}
interface Policies extends Registry {
  make(name: string, parts: object): Policy
  names(): readonly string[]
}
interface Product {
  readonly registry: Policies
  readonly parts: object
  /** Resident memory of the empty tables. */
  readonly reservedMiB: number
}

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(`${ROOT}/${file}.${ENDING}`, import.meta.url).href)) as Record<string, unknown>
}

async function open(): Promise<Product> {
  const { PolicyRegistry } = (await load('kernel/balance/policy-registry')) as {
    PolicyRegistry: new () => Policies
  }
  const addPolicies = await policyAdder(load)
  const { ThreadMetrics } = (await load('kernel/observe/metrics')) as { ThreadMetrics: new () => object }
  const metrics = new ThreadMetrics()
  const shared = (_name: string, bytes: number) => new SharedArrayBuffer(bytes)
  const beforeMiB = rssMiB()
  const registry = new PolicyRegistry()
  addPolicies(registry, { shared, metrics, maxWorkers: 4_096 })
  const reservedMiB = rssMiB() - beforeMiB
  return { registry, reservedMiB, parts: { model: 'm', leg: 'whole', random: Math.random, metrics, shared } }
}

/** Candidates as passed by balancing, all available. */
class View {
  readonly length: number
  readonly members: readonly { slot: number; id: string; url: string; cost: number }[]
  private readonly load_: Int32Array

  constructor(count: number) {
    this.length = count
    this.load_ = new Int32Array(count)
    this.members = Array.from({ length: count }, (_, slot) => {
      return { slot, id: `worker-${slot}`, url: `http://10.0.${slot >> 8}.${slot & 255}:8000`, cost: 1 }
    })
  }

  worker(index: number) {
    return this.members[index]
  }

  slot(index: number): number {
    return this.members[index].slot
  }

  inFlight(index: number): number {
    return this.load_[index]
  }

  load(): null {
    return null
  }

  indexOfSlot(slot: number): number {
    return slot < this.length ? slot : -1
  }
}

const WORDS =
  'a gateway sends every prompt where most of it has been before unless that engine is busy'.split(' ')

/** A chat request with a prompt of about that size in bytes, unique by its number. */
function chatBody(number: number, bytes: number): Buffer {
  const words = [`session ${number}`]
  let length = words[0].length
  for (let i = number; length < bytes; i = (Math.imul(i, 1_103_515_245) + 12_345) & 0x7fff_ffff) {
    const word = WORDS[i % WORDS.length]
    words.push(word)
    length += word.length + 1
  }
  const content = words.join(' ').slice(0, bytes)
  return Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], stream: true }))
}

const requestFor = (body: Buffer, key = '') => ({
  model: 'm',
  leg: 'whole',
  body,
  tokenIds: null,
  header: (name: string) => (name === 'x-weir-routing-key' ? key : undefined),
})

/** CPU time of `work` in microseconds, independent of other load on the machine. */
function cpuMicros(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Mean CPU time of a pick in each round, in microseconds. */
function time(policy: Policy, view: View, requests: readonly object[]): number[] {
  return Array.from({ length: ROUNDS }, (_, round) => {
    const first = (round * PICKS) % requests.length
    const micros = cpuMicros(() => {
      for (let i = first; i < first + PICKS; i++) policy.pick(view, requests[i % requests.length])
    })
    return micros / PICKS
  })
}

const bodies = (from: number, count: number, bytes: number) =>
  Array.from({ length: count }, (_, i) => requestFor(chatBody(from + i, bytes)))

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Resident memory after garbage collection. */
function rssMiB(): number {
  collect()
  return process.memoryUsage.rss() / 1_048_576
}

function cacheAwareFigures({ registry, parts }: Product): Figure[] {
  const policy = registry.make('cache_aware', parts)
  const hundred = new View(100)
  const figures: Figure[] = []
  const beforeMiB = rssMiB()
  for (let i = 0; i < CACHED_PROMPTS; i++) policy.pick(hundred, requestFor(chatBody(i, 4_096)))
  figures.push({
    name: `memory of ${CACHED_PROMPTS} prompts of 4 KiB`,
    unit: 'MiB',
    values: [rssMiB() - beforeMiB],
    target: 80,
    note: 'resident; the table itself stays within 64 MiB by its setting',
  })
  const recent = bodies(CACHED_PROMPTS - 1_000, 1_000, 4_096)
  const figure = (name: string, values: number[], target: number) =>
    figures.push({ name, unit: 'µs', values, target })
  figure('pick, 4 KiB seen before, 100 workers', time(policy, hundred, recent), 20)
  const fresh = bodies(1_000_000, ROUNDS * PICKS, 4_096)
  figure('pick, 4 KiB never seen, 100 workers', time(policy, hundred, fresh), 20)
  figure('pick, 300 bytes, 100 workers', time(policy, hundred, bodies(0, 1_000, 300)), 20)
  figure('pick, 100 KiB, 100 workers', time(policy, hundred, bodies(0, 200, 102_400)), 200)
  figure('pick, 4 KiB, 2000 workers', time(policy, new View(2_000), recent), 200)
  policy.close?.()
  return figures
}

function everyPolicy({ registry, parts }: Product): Figure[] {
  const requests = Array.from({ length: 500 }, (_, i) => requestFor(chatBody(i, 4_096), `session-${i}`))
  return registry.names().flatMap((name) =>
    [100, 2_000].map((workers) => {
      const policy = registry.make(name, parts)
      const view = new View(workers)
      time(policy, view, requests)
      const values = time(policy, view, requests)
      policy.close?.()
      return { name: `${name}, ${workers} workers`, unit: 'µs', values, target: workers === 100 ? 20 : 200 }
    }),
  )
}

function ringFigure({ registry, parts }: Product): Figure {
  const values = Array.from({ length: ROUNDS }, () => {
    const policy = registry.make('consistent_hashing', parts)
    const view = new View(2_000)
    return cpuMicros(() => policy.pick(view, requestFor(Buffer.alloc(0), 'key'))) / 1_000
  })
  return { name: 'first pick on a ring of 2000 workers', unit: 'ms', values, target: 50 }
}

async function main(): Promise<void> {
  const product = await open()
  const reserved: Figure = {
    name: 'memory reserved and not yet used',
    unit: 'MiB',
    values: [product.reservedMiB],
    target: 4,
    note: 'resident, of 67 MiB of address space',
  }
  const figures = [reserved, ...cacheAwareFigures(product), ...everyPolicy(product), ringFigure(product)]
  const question = 'what does one choice cost, and what does cache_aware remember?'
  console.log(renderTable({ scenario: 'cache-aware', question, figures }))
  if (figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
}

await main()
