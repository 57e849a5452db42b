/**
 * CPU time of a rate and of two tenant limits per request on a data thread: of one gateway, and shared with other gateways.
 * Run `node --conditions=weir-source bench/micro/limits.ts`.
 */
import { defineValidator } from '#kernel'
import {
  Allowance,
  type SharedBucket,
  TokenShortage,
} from '../../plugins/access/limits/allowance/allowance.ts'
import { AllowanceMemory } from '../../plugins/access/limits/allowance/allowance-memory.ts'
import { limitsConfig } from '../../plugins/access/limits/config.ts'
import { BucketTable } from '../../plugins/access/limits/rates/bucket-table.ts'
import { RateLimit } from '../../plugins/access/limits/rates/rate-limit.ts'
import { TenantLimiter } from '../../plugins/access/limits/rates/tenant-limiter.ts'
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

const memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(40_000)))
const allowance = new Allowance(memory, () => Promise.resolve())
const rows = new Set<number>()
/** Fills the stock of a bucket for the whole run. */
function fill({ facts }: SharedBucket): void {
  const row = memory.claim(facts.low, facts.high, (free) => !rows.has(free))
  rows.add(row)
  memory.grant(row, LIMIT, 1, Number(process.hrtime.bigint() / 1_000_000n) + 3_600_000)
}

const words = () => new BigInt64Array(new SharedArrayBuffer(8))
const own = new RateLimit(words(), 1_000_000, 0)
const shared = new RateLimit(words(), 1_000_000, 0, { allowance, name: 'bench' })
if (shared.shared !== null) fill(shared.shared)

const limits = { requestsPerMinute: LIMIT, tokensPerMinute: LIMIT }
const { tenants } = defineValidator(limitsConfig).parse({ tenants: { default: limits } })
const openTenants = () =>
  new TenantLimiter(new BucketTable(new SharedArrayBuffer(BucketTable.bytes(40_000))), tenants)
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

const limited = (tenants: TenantLimiter) => (index: number) => {
  const nowNs = process.hrtime.bigint()
  const reservation = tenants.reserve(names[index % TENANTS], NO_MODELS, 10, nowNs)
  if (reservation === null || reservation instanceof TokenShortage) throw new Error('nothing was reserved')
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
