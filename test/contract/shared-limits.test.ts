/** Limits that gateways share, on a virtual clock: many gateways with uneven traffic, and one engine a millisecond away. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Allowance, TokenShortage } from '../../plugins/access/limits/allowance/allowance.ts'
import { AllowanceMemory } from '../../plugins/access/limits/allowance/allowance-memory.ts'
import { TokenGrants } from '../../plugins/access/limits/allowance/token-grants.ts'
import { RateLimit } from '../../plugins/access/limits/rates/rate-limit.ts'
import { GrantWindows } from '../../plugins/mesh/mesh/local-engine.ts'

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
  readonly memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(8)))
  readonly grants: TokenGrants
  readonly #allowance: Allowance
  readonly #rate: RateLimit
  calls = 0
  /** Replaces the engine. */
  outage: (() => Promise<never>) | null = null

  constructor(engine: GrantWindows, perSecond: number, random: () => number) {
    const way = () => new Promise((resolve) => setTimeout(resolve, random() * WAY_MS))
    this.grants = new TokenGrants({
      memory: this.memory,
      grant: async (requests) => {
        this.calls++
        if (this.outage !== null) await this.outage()
        await way()
        const grants = requests.map((request) => engine.grant(request, Date.now()))
        await way()
        return grants
      },
      shares: () => 3,
      nowMs: () => performance.now(),
    })
    this.#allowance = new Allowance(this.memory, (needs) => this.grants.ask(needs))
    const alone = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
    this.#rate = new RateLimit(alone, perSecond, 0, { allowance: this.#allowance, name: 'test' })
  }

  /** @param onAdmitted called at the time of the admission; @returns whether it was admitted */
  async request(onAdmitted?: () => void): Promise<boolean> {
    for (;;) {
      const result = this.#rate.take(BigInt(Math.round(performance.now() * 1e6)))
      if (result === 0n) onAdmitted?.()
      if (!(result instanceof TokenShortage)) return result === 0n
      await this.#allowance.wait(result.bucket, result.tokens)
    }
  }
}

interface Second {
  offered: number
  admitted: number
}

interface Outcome {
  /** Seconds of the engine, without the first and the last. */
  readonly seconds: readonly Second[]
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
  const bySecond = new Map<number, Second>()
  const count = (what: keyof Second) => {
    const number = Math.floor(Date.now() / SECOND_MS)
    const second = bySecond.get(number) ?? { offered: 0, admitted: 0 }
    second[what]++
    bySecond.set(number, second)
  }
  for (let ms = 0; ms < seconds * SECOND_MS; ms++) {
    for (const [index, gateway] of all.entries()) {
      const rate = ((limit * load) / SECOND_MS) * (weights[index] / weight)
      for (let arrivals = poisson(rate, random); arrivals > 0; arrivals--) {
        count('offered')
        void gateway.request(() => count('admitted'))
      }
    }
    await vi.advanceTimersByTimeAsync(1)
  }
  const calls = Math.max(...all.map((gateway) => gateway.calls))
  await Promise.all(all.map(({ grants }) => Promise.all([grants.stop(), vi.advanceTimersByTimeAsync(5)])))
  return { seconds: [...bySecond.values()].slice(1, -1), callsPerSecond: calls / seconds }
}

function poisson(rate: number, random: () => number): number {
  const end = Math.exp(-rate)
  let count = 0
  for (let product = random(); product > end; product *= random()) count++
  return count
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance', 'Date'],
    now: 1_000_000,
  })
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
  ])(
    '$gateways gateways, $limit per second, $load times as many requests',
    async ({ gateways, limit, load }) => {
      const { seconds, callsPerSecond } = await simulate(gateways, limit, load, 6)
      expect(seconds.length).toBeGreaterThanOrEqual(4)
      const possible = seconds.reduce((sum, { offered }) => sum + Math.min(limit, offered), 0)
      const admitted = seconds.reduce((sum, second) => sum + second.admitted, 0)
      for (const second of seconds) expect(second.admitted).toBeLessThanOrEqual(limit)
      expect(admitted / possible).toBeGreaterThanOrEqual(0.99)
      expect(callsPerSecond).toBeLessThanOrEqual(83)
    },
  )
})

describe('a gateway', () => {
  const open = (perSecond: number) => {
    const engine = new GrantWindows()
    const [first, second] = [1, 2].map((seed) => new Gateway(engine, perSecond, randomOf(seed)))
    return { first, second }
  }
  /** Sends requests at once. @returns how many are admitted */
  const burst = async (gateway: Gateway, count: number, withinMs = 10) => {
    const sent = Promise.all(Array.from({ length: count }, () => gateway.request()))
    await vi.advanceTimersByTimeAsync(withinMs)
    return (await sent).filter((isAdmitted) => isAdmitted).length
  }

  test('gives unused tokens back, so that another one can use them in the same window', async () => {
    const { first, second } = open(100)
    for (let at = 0; at < 10; at++) {
      await burst(first, 3)
      await vi.advanceTimersByTimeAsync(10)
    }
    await vi.advanceTimersByTimeAsync(700)
    expect(await burst(second, 100)).toBe(70)
  })

  test('does not spend tokens of a window in a later one', async () => {
    const { first, second } = open(100)
    await vi.advanceTimersByTimeAsync(900)
    for (let at = 0; at < 4; at++) {
      await burst(first, 10)
      await vi.advanceTimersByTimeAsync(10)
    }
    await vi.advanceTimersByTimeAsync(50)
    // The first one has asked for a stock of the new window.
    const admitted = await burst(second, 200)
    expect(admitted).toBeLessThan(100)
    expect(admitted + (await burst(first, 200))).toBe(100)
  })

  test('after a refusal, the engine is not asked until the next window', async () => {
    const { first } = open(5)
    await vi.advanceTimersByTimeAsync(600)
    expect(await burst(first, 20)).toBe(5)
    const { calls } = first
    for (let at = 0; at < 10; at++) expect(await burst(first, 20)).toBe(0)
    expect(first.calls).toBe(calls)
    await vi.advanceTimersByTimeAsync(300)
    expect(await burst(first, 20)).toBe(5)
  })

  test('uses its share while the engine is away, and tokens once it is back', async () => {
    const { first } = open(90)
    expect(await burst(first, 20)).toBe(20)
    first.outage = () => Promise.reject(new Error('away'))
    await vi.advanceTimersByTimeAsync(1_000)
    await burst(first, 1)
    let admitted = 0
    for (let at = 0; at < 100; at++) admitted += await burst(first, 2)
    expect(admitted).toBeGreaterThanOrEqual(29)
    expect(admitted).toBeLessThanOrEqual(33)
    first.outage = null
    await vi.advanceTimersByTimeAsync(1_000)
    expect(first.memory.shares).toBe(0)
    expect(await burst(first, 100)).toBe(90)
  })

  test('waits at most 250 ms for an engine that does not answer; requests with stock do not wait', async () => {
    const { first } = open(1_000)
    for (let at = 0; at < 10; at++) await burst(first, 20)
    first.outage = () => new Promise(() => undefined)
    expect(await burst(first, 20, 0)).toBe(20)
    await vi.advanceTimersByTimeAsync(SECOND_MS)
    const outcome = await burst(first, 1, 251)
    expect(outcome).toBe(1)
    expect(first.memory.shares).toBe(3)
    expect(await burst(first, 1, 0)).toBe(1)
  })

  test('an overrun is paid in the next window', async () => {
    const memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(8)))
    const row = memory.claim(1, 1, () => true)
    memory.grant(row, 10, 1, 1_000)
    memory.charge(row, 15)
    memory.grant(row, 20, 2, 2_000)
    expect(memory.take(row, 16, 1_500)).toBe(-1)
    expect(memory.take(row, 15, 1_500)).toBe(0)
    memory.putBack(row, 5, 1)
    expect(memory.take(row, 1, 1_500)).toBe(-1)
    memory.putBack(row, 5, 2)
    expect(memory.take(row, 5, 1_500)).toBe(0)
  })
})
