/**
 * CPU time of a rate and of two tenant limits per request on a data thread: of one gateway, and shared with other gateways.
 * Run `npm run build`, then `node bench/micro/limits.ts`.
 */
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const ROUNDS = 7
const REQUESTS = 200_000
const TENANTS = 50
const NO_MODELS: readonly string[] = []
/** Highest accepted microseconds per request. */
const TARGET = 1
/** Never reached. */
const LIMIT = 1_000_000_000

async function load(file: string): Promise<Record<string, unknown>> {
  const url = new URL(`../../dist/plugins/access/limits/${file}.js`, import.meta.url)
  return (await import(url.href)) as Record<string, unknown>
}

interface Bucket {
  readonly facts: { readonly low: number; readonly high: number }
}
interface Rate {
  readonly shared: Bucket | null
  take(nowNs: bigint): unknown
}
interface Memory {
  claim(low: number, high: number, isFree: (row: number) => boolean): number
  grant(row: number, tokens: number, window: number, endsAtMs: number): void
}
interface Shortage {
  readonly bucket: Bucket
}
interface Tenants {
  share(allowance: object): void
  reserve(tenant: string, models: readonly string[], tokens: number, nowNs: bigint): object
  settle(reservation: object, usedTokens: number, nowNs: bigint): void
}
type Make<Made> = new (...parameters: unknown[]) => Made
const { AllowanceMemory } = (await load('allowance/allowance-memory')) as {
  AllowanceMemory: Make<Memory> & { bytes(buckets: number): number }
}
const { Allowance, TokenShortage } = (await load('allowance/allowance')) as {
  Allowance: Make<object>
  TokenShortage: Make<Shortage>
}
const { RateLimit } = (await load('rates/rate-limit')) as { RateLimit: Make<Rate> }
const { TenantLimiter } = (await load('rates/tenant-limiter')) as { TenantLimiter: Make<Tenants> }
const { BucketTable } = (await load('rates/bucket-table')) as {
  BucketTable: Make<object> & { bytes(rows: number): number }
}

const memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(40_000)))
const allowance = new Allowance(memory, () => Promise.resolve())
const rows = new Set<number>()
/** Fills the stock of a bucket for the whole run. */
function fill({ facts }: Bucket): void {
  const row = memory.claim(facts.low, facts.high, (free) => !rows.has(free))
  rows.add(row)
  memory.grant(row, LIMIT, 1, Number(process.hrtime.bigint() / 1_000_000n) + 3_600_000)
}

const words = () => new BigInt64Array(new SharedArrayBuffer(8))
const own = new RateLimit(words(), 1_000_000, 0)
const shared = new RateLimit(words(), 1_000_000, 0, { allowance, name: 'bench' })
if (shared.shared !== null) fill(shared.shared)

const limits = { requestsPerMinute: LIMIT, tokensPerMinute: LIMIT, modelRules: [] }
const openTenants = () =>
  new TenantLimiter(new BucketTable(new SharedArrayBuffer(BucketTable.bytes(40_000))), {
    default: limits,
    overrides: [],
  })
const ownTenants = openTenants()
const sharedTenants = openTenants()
sharedTenants.share(allowance)
const names = Array.from({ length: TENANTS }, (_, index) => `auth:tenant-${index}`)
for (const name of names)
  for (;;) {
    const taken = sharedTenants.reserve(name, [], 1, process.hrtime.bigint())
    if (!(taken instanceof TokenShortage)) break
    fill(taken.bucket)
  }

const limited = (tenants: Tenants) => (index: number) => {
  const nowNs = process.hrtime.bigint()
  const reservation = tenants.reserve(names[index % TENANTS], NO_MODELS, 10, nowNs)
  tenants.settle(reservation, 12, nowNs)
}
const measures: readonly [name: string, act: (index: number) => unknown][] = [
  ['read the clock', () => process.hrtime.bigint()],
  ['requests per second, one gateway', () => own.take(process.hrtime.bigint())],
  ['requests per second, shared', () => shared.take(process.hrtime.bigint())],
  ['tenant, one gateway', limited(ownTenants)],
  ['tenant, shared', limited(sharedTenants)],
]

const values = new Map(measures.map(([name]) => [name, [] as number[]]))
for (let round = 0; round <= ROUNDS; round++)
  for (const [name, act] of measures) {
    const before = process.cpuUsage()
    for (let index = 0; index < REQUESTS; index++) act(index)
    // The first round warms up.
    if (round > 0) values.get(name)?.push(process.cpuUsage(before).user / REQUESTS)
  }
const figures: Figure[] = [...values].map(([name, micros]) => ({
  name,
  unit: 'µs',
  values: micros,
  target: TARGET,
}))
console.log(renderTable({ scenario: 'limits', question: 'what do limits cost a data thread?', figures }))
process.exit(figures.some((figure) => verdict(figure) === 'missed') ? 1 : 0)
