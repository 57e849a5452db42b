/** Limits that gateways share, on a virtual clock: many gateways with uneven traffic, and one engine a millisecond away. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Allowance } from '../../plugins/access/limits/allowance/allowance.ts'
import { AllowanceMemory, ASK } from '../../plugins/access/limits/allowance/allowance-memory.ts'
import { rateBucket, type SharedBucket } from '../../plugins/access/limits/allowance/shared-bucket.ts'
import { TokenGrants } from '../../plugins/access/limits/allowance/token-grants.ts'
import { GrantWindows } from '../../plugins/mesh/mesh/grant-windows.ts'

const SECOND_MS = 1_000
/** Longest time on the way to the engine, and back. */
const WAY_MS = 1

/** Numbers from 0 to 1, the same in each run. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

class Gateway {
  readonly allowance: Allowance
  readonly grants: TokenGrants
  readonly #bucket: SharedBucket
  calls = 0
  isEngineAway = false

  constructor(engine: GrantWindows, perSecond: number, random: () => number) {
    const memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(8)))
    const way = () => new Promise((resolve) => setTimeout(resolve, random() * WAY_MS))
    this.grants = new TokenGrants({
      memory,
      grant: async (requests) => {
        this.calls++
        if (this.isEngineAway) throw new Error('away')
        await way()
        const grants = requests.map((request) => engine.grant(request, Date.now()))
        await way()
        return grants
      },
      shares: () => 3,
      nowMs: () => performance.now(),
    })
    this.allowance = new Allowance(memory, (needs) => this.grants.ask(needs))
    this.#bucket = rateBucket('test', perSecond)
  }

  /** @param onAdmitted called at the time of the admission */
  async request(onAdmitted: () => void): Promise<void> {
    for (;;) {
      const result = this.allowance.take(this.#bucket, 1, performance.now())
      if (result === 0) onAdmitted()
      if (result !== ASK) return
      await this.allowance.wait(this.#bucket, 1)
    }
  }
}

interface Outcome {
  /** By second of the engine, without the first and the last. */
  readonly admitted: number[]
  readonly offered: number
  /** Of the busiest gateway. */
  readonly callsPerSecond: number
}

/** @param load requests per second over all gateways, as a multiple of the limit */
async function simulate(gateways: number, limit: number, load: number, seconds: number): Promise<Outcome> {
  const random = randomOf(gateways * 7 + limit)
  const engine = new GrantWindows()
  const all = Array.from({ length: gateways }, () => new Gateway(engine, limit, random))
  const weights = all.map((_, index) => 1 / (index + 1))
  const weight = weights.reduce((sum, one) => sum + one, 0)
  const bySecond = new Map<number, number>()
  let offered = 0
  const onAdmitted = () => {
    const second = Math.floor(Date.now() / SECOND_MS)
    bySecond.set(second, (bySecond.get(second) ?? 0) + 1)
  }
  for (let ms = 0; ms < seconds * SECOND_MS; ms++) {
    for (const [index, gateway] of all.entries()) {
      const rate = ((limit * load) / SECOND_MS) * (weights[index] / weight)
      for (let arrivals = poisson(rate, random); arrivals > 0; arrivals--) {
        offered++
        void gateway.request(onAdmitted)
      }
    }
    await vi.advanceTimersByTimeAsync(1)
  }
  const calls = Math.max(...all.map((gateway) => gateway.calls))
  await Promise.all(all.map(({ grants }) => Promise.all([grants.stop(), vi.advanceTimersByTimeAsync(5)])))
  return {
    admitted: [...bySecond.values()].slice(1, -1),
    offered: offered / seconds,
    callsPerSecond: calls / seconds,
  }
}

function poisson(rate: number, random: () => number): number {
  const end = Math.exp(-rate)
  let count = 0
  for (let product = random(); product > end; product *= random()) count++
  return count
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance', 'Date'], now: 1_000_000 })
})
afterEach(() => void vi.useRealTimers())

describe('a limit of all gateways', () => {
  test.each([
    { gateways: 3, limit: 100, load: 1.5 },
    { gateways: 3, limit: 1_000, load: 1.5 },
    { gateways: 3, limit: 1_000, load: 1 },
    { gateways: 3, limit: 1_000, load: 0.7 },
    { gateways: 10, limit: 100, load: 1.5 },
    { gateways: 30, limit: 1_000, load: 1.2 },
    { gateways: 30, limit: 1_000, load: 1 },
    { gateways: 100, limit: 1_000, load: 1.5 },
    { gateways: 100, limit: 1_000, load: 1 },
    { gateways: 100, limit: 100, load: 2 },
  ])('$gateways gateways, $limit per second, $load times as many requests', async ({ gateways, limit, load }) => {
    const { admitted, offered, callsPerSecond } = await simulate(gateways, limit, load, 6)
    const mean = admitted.reduce((sum, one) => sum + one, 0) / admitted.length
    console.log({ gateways, limit, load, mean, offered, max: Math.max(...admitted), callsPerSecond })
    expect(Math.max(...admitted)).toBeLessThanOrEqual(limit)
  })
})
