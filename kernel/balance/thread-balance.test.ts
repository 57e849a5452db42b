/** Balancing as seen by its callers: picks, rejections, counts. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  balanceParts,
  errorOf,
  openBalance,
  pickContext,
  TestTable,
} from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { Policy } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import {
  NO_PENDING_WORKERS,
  type PendingWorkers,
  type WorkerEntry,
  type WorkerStatus,
} from '../contracts/worker.ts'
import { OPEN, toCell } from './breaker-cell.ts'
import { SharedColumn } from './counter-layout.ts'
import { Counters, createCounters } from './counters.ts'
import type { ThreadBalance, ThreadBalanceOptions } from './thread-balance.ts'

const ctx = pickContext({ 'x-key': 'k1' })

let table: TestTable
let balance: ThreadBalance

function open(options: Partial<ThreadBalanceOptions> = {}): ThreadBalance {
  const counters = new Counters(createCounters(64, 0), 0)
  return openBalance({ ...balanceParts(), counters, table, defaultPolicy: 'least_load', ...options })
}

/** Publishes workers and makes them all ready. */
function register(...workers: WorkerEntry[]): void {
  table.publish(workers)
  for (const { slot } of workers) balance.setStatus(slot, 'ready')
}

/** Number of picks of each slot, one request after the other. */
function countPicks(times: number, model = 'm'): Record<number, number> {
  const counts: Record<number, number> = {}
  for (let i = 0; i < times; i++) {
    const attempt = balance.pick(ctx, model)
    counts[attempt.worker.slot] = (counts[attempt.worker.slot] ?? 0) + 1
    attempt.release()
  }
  return counts
}

beforeEach(() => {
  table = new TestTable()
  balance = open()
})

test('a breaker that opened without a notification hides no other worker', () => {
  const counters = new Counters(createCounters(64, 0), 0)
  balance = open({ counters, defaultPolicy: 'random', random: () => 0 })
  register(workerEntry({ slot: 0, models: ['m'] }), workerEntry({ slot: 1, models: ['m'] }))
  expect(countPicks(2)).toEqual({ 0: 2 })
  // The state that a thread leaves if it dies while opening the breaker.
  const { layout } = counters
  layout.cells[layout.shared(SharedColumn.openedAt)] = Date.now() | 0
  layout.cells[layout.shared(SharedColumn.breaker)] = toCell(OPEN, 10, 1)
  expect(countPicks(2)).toEqual({ 1: 2 })
})

describe('rejected picks', () => {
  test('no worker at all is 503 no_workers', () => {
    expect(errorOf(() => balance.pick(ctx, 'm'))).toMatchObject({ code: 'no_workers', status: 503 })
    expect(errorOf(() => balance.pick(ctx, 'unknown'))).toMatchObject({ code: 'no_workers', status: 503 })
  })

  test('a model without workers is 404 model_not_found, with the model', () => {
    register(workerEntry({ slot: 0, models: ['m'] }))
    const error = errorOf(() => balance.pick(ctx, 'x'))
    expect(error).toMatchObject({ code: 'model_not_found', status: 404 })
    expect(error.message).toContain("no worker serves model 'x'")
  })

  test('a model that a worker may serve once it is registered is 503 with retry-after', () => {
    let pending: PendingWorkers = { ...NO_PENDING_WORKERS, count: 2, isDiscovering: true }
    balance = open({
      pending: {
        get current() {
          return pending
        },
      },
    })
    const refusal = (model: string) => {
      const { code, status, headers } = errorOf(() => balance.pick(ctx, model))
      return [code, status, ...headers]
    }
    expect(refusal('x')).toEqual(['workers_pending', 503, 'retry-after', '5'])
    pending = { ...pending, isDiscovering: false }
    expect(refusal('x')).toEqual(['no_workers', 503, 'retry-after', '5'])
    pending = { ...pending, isDiscovering: true }
    register(
      workerEntry({ slot: 0, models: ['m'] }),
      workerEntry({ slot: 1, models: ['p'], workerType: 'prefill' }),
    )
    expect(refusal('x')).toEqual(['workers_pending', 503, 'retry-after', '5'])
    expect(refusal('p')).toEqual(['server_selection_failed', 503, 'retry-after', '5'])
    pending = { ...pending, isDiscovering: false, models: ['late'] }
    expect(refusal('late')).toEqual(['workers_pending', 503, 'retry-after', '5'])
    expect(refusal('x')).toEqual(['model_not_found', 404])
    expect(balance.pick(ctx, 'm').worker.slot).toBe(0)
  })

  test.each<WorkerStatus>(['pending', 'not_ready', 'failed', 'draining'])(
    'a model whose only worker is %s is 503 no_available_workers with retry-after',
    (status) => {
      register(workerEntry({ slot: 0, models: ['m'] }))
      balance.setStatus(0, status)
      expect(errorOf(() => balance.pick(ctx, 'm'))).toMatchObject({
        code: 'no_available_workers',
        status: 503,
        isRetryable: true,
        headers: ['retry-after', '1'],
      })
      expect(balance.inFlight(0)).toBe(0)
    },
  )

  test('a very long model name is truncated in the message', () => {
    register(workerEntry({ slot: 0, models: ['m'] }))
    expect(errorOf(() => balance.pick(ctx, 'x'.repeat(100_000))).message.length).toBeLessThan(300)
  })
})

describe('picked workers', () => {
  test('a wildcard worker serves any model, after those that list it', () => {
    register(workerEntry({ slot: 0 }), workerEntry({ slot: 1, models: ['m'] }))
    expect(countPicks(10, 'm')).toEqual({ 1: 10 })
    expect(countPicks(10, 'x')).toEqual({ 0: 10 })
    balance.setStatus(1, 'not_ready')
    expect(countPicks(10, 'm')).toEqual({ 0: 10 })
  })

  test('the highest tier with a ready worker gets all requests', () => {
    register(
      workerEntry({ slot: 0, models: ['m'], priority: 10 }),
      workerEntry({ slot: 1, models: ['m'], priority: 60, cost: 9 }),
    )
    const held = Array.from({ length: 5 }, () => balance.pick(ctx, 'm'))
    expect(held.map((attempt) => attempt.worker.slot)).toEqual([1, 1, 1, 1, 1])
    balance.setStatus(1, 'draining')
    expect(balance.pick(ctx, 'm').worker.slot).toBe(0)
    expect(balance.inFlight(1)).toBe(5)
  })

  test('slots already tried are skipped over all tiers, until no other worker is left', () => {
    register(
      workerEntry({ slot: 0, models: ['m'], priority: 60 }),
      workerEntry({ slot: 1, models: ['m'] }),
      workerEntry({ slot: 2 }),
    )
    expect(balance.pick(ctx, 'm', { excluded: [0] }).worker.slot).toBe(1)
    expect(balance.pick(ctx, 'm', { excluded: [0, 1] }).worker.slot).toBe(2)
    expect(balance.pick(ctx, 'm', { excluded: [0, 1, 2] }).worker.slot).toBe(0)
    balance.setStatus(0, 'failed')
    expect(balance.pick(ctx, 'm', { excluded: [0, 1, 2] }).worker.slot).toBe(1)
  })

  test('hasUntried: whether a policy could pick another worker now', () => {
    register(
      workerEntry({ slot: 0, models: ['m'], priority: 60 }),
      workerEntry({ slot: 1, models: ['m'] }),
      workerEntry({ slot: 2, models: ['other'] }),
      workerEntry({ slot: 3, models: ['m'], workerType: 'prefill' }),
    )
    expect(balance.hasUntried('m', { excluded: [0] })).toBe(true)
    expect(balance.hasUntried('m', { excluded: [0], accepts: ({ slot }) => slot === 0 })).toBe(false)
    expect(balance.hasUntried('m', { excluded: [0, 1] })).toBe(false)
    expect(balance.hasUntried('m', { leg: 'prefill', excluded: [3] })).toBe(false)
    expect(balance.hasUntried('unserved', { excluded: [0] })).toBe(false)
    balance.setStatus(1, 'not_ready')
    expect(balance.hasUntried('m', { excluded: [0] })).toBe(false)
  })

  test('an alias picks among the workers of the canonical model', () => {
    register(workerEntry({ slot: 0, models: [{ id: 'm', aliases: ['a'] }] }), workerEntry({ slot: 1 }))
    expect(balance.canonicalModel('a')).toBe('m')
    expect(countPicks(5, 'a')).toEqual({ 0: 5 })
  })

  test('the next pick uses the next table', () => {
    register(workerEntry({ slot: 0, models: ['m'] }))
    countPicks(1)
    register(workerEntry({ slot: 1, models: ['m'], url: 'http://new' }))
    expect(balance.pick(ctx, 'm').worker.url).toBe('http://new')
    expect(balance.byId('worker-0')).toBeUndefined()
    expect(balance.workers).toHaveLength(1)
  })

  test('firstReady returns the first registered worker that is ready and accepted', () => {
    register(workerEntry({ slot: 5 }), workerEntry({ slot: 2 }), workerEntry({ slot: 3, models: ['m'] }))
    balance.setStatus(5, 'pending')
    expect(balance.firstReady()?.slot).toBe(2)
    expect(balance.firstReady((worker) => worker.models.length > 0)?.slot).toBe(3)
    expect(balance.firstReady(() => false)).toBeUndefined()
  })
})

describe('attempts', () => {
  test.each(['random', 'round_robin', 'least_load', 'power_of_two'])(
    'count as in flight until released once, under %s',
    (policy) => {
      balance = open({ defaultPolicy: policy })
      register(workerEntry({ slot: 7, models: ['m'] }))
      const first = balance.pick(ctx, 'm')
      const second = balance.pick(ctx, 'm')
      expect(balance.inFlight(7)).toBe(2)
      first.release()
      first.release()
      expect(balance.inFlight(7)).toBe(1)
      second.release()
      expect(balance.inFlight(7)).toBe(0)
    },
  )

  test('at a named worker count too', () => {
    register(workerEntry({ slot: 1, models: ['m'] }))
    const attempt = balance.attempt(balance.workers[0])
    expect(balance.inFlight(1)).toBe(1)
    attempt.release()
    expect(balance.inFlight(1)).toBe(0)
  })

  test('outlive their worker: the count decreases when the stream ends', () => {
    register(workerEntry({ slot: 0, models: ['m'] }))
    const attempt = balance.pick(ctx, 'm')
    table.publish([])
    expect(balance.inFlight(0)).toBe(1)
    attempt.release()
    expect(balance.inFlight(0)).toBe(0)
  })
})

describe('policies', () => {
  const three = [0, 1, 2].map((slot) => workerEntry({ slot, models: ['m'] }))

  test('round_robin gives 3 workers exactly 100 of 300', () => {
    balance = open({ defaultPolicy: 'round_robin' })
    register(...three)
    expect(countPicks(300)).toEqual({ 0: 100, 1: 100, 2: 100 })
  })

  test('round_robin shares evenly among the remaining workers when one becomes unavailable, and again when it returns', () => {
    balance = open({ defaultPolicy: 'round_robin' })
    register(...three)
    countPicks(31)
    balance.setStatus(1, 'not_ready')
    expect(countPicks(200)).toEqual({ 0: 100, 2: 100 })
    balance.setStatus(1, 'ready')
    expect(countPicks(300)).toEqual({ 0: 100, 1: 100, 2: 100 })
  })

  test('round_robin rotates independently for two models', () => {
    balance = open({ defaultPolicy: 'round_robin' })
    register(...[0, 1].map((slot) => workerEntry({ slot, models: ['m', 'n'] })))
    const slots = ['m', 'n', 'm', 'n'].map((model) => balance.pick(ctx, model).worker.slot)
    expect(slots).toEqual([0, 0, 1, 1])
  })

  test('random keeps each of 4 workers within 15 % of 1000 in 4000', () => {
    let state = 1
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state / 2 ** 32
    }
    balance = open({ defaultPolicy: 'random', random })
    register(...three, workerEntry({ slot: 3, models: ['m'] }))
    const counts = Object.values(countPicks(4_000))
    expect(counts).toHaveLength(4)
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThanOrEqual(150)
  })

  test('power_of_two picks the one with fewer requests in flight', () => {
    balance = open({ defaultPolicy: 'power_of_two' })
    register(three[0], three[1])
    const busy = balance.attempt(three[0])
    for (let i = 0; i < 20; i++) {
      const attempt = balance.pick(ctx, 'm')
      expect(attempt.worker.slot).toBe(1)
      attempt.release()
    }
    busy.release()
  })

  test('power_of_two draws two distinct workers and keeps the first if they are equal', () => {
    const draws = [0.5, 0.99]
    let next = 0
    balance = open({ defaultPolicy: 'power_of_two', random: () => draws[next++ % 2] })
    register(...three)
    expect(balance.pick(ctx, 'm').worker.slot).toBe(1)
    expect(balance.pick(ctx, 'm').worker.slot).toBe(0)
  })

  test('least_load picks the shortest queue', () => {
    register(...three)
    for (const [slot, load] of [3, 1, 2].entries()) {
      for (let i = 0; i < load; i++) balance.attempt(three[slot])
    }
    expect(balance.pick(ctx, 'm').worker.slot).toBe(1)
  })

  test('least_load spreads sequential requests over an idle fleet', () => {
    register(...three)
    expect(countPicks(30)).toEqual({ 0: 10, 1: 10, 2: 10 })
    const busy = balance.attempt(three[0])
    expect(countPicks(20)).toEqual({ 1: 10, 2: 10 })
    busy.release()
  })

  test('least_load prefers lower cost only between equal loads', () => {
    register(workerEntry({ slot: 0, models: ['m'], cost: 2 }), workerEntry({ slot: 1, models: ['m'] }))
    const slots = [0, 1, 2, 3].map(() => balance.pick(ctx, 'm').worker.slot)
    expect(slots).toEqual([1, 0, 1, 0])
  })

  test('a label on the first worker sets the policy of that model only, until its last worker is removed', () => {
    const labelled = workerEntry({ slot: 0, models: ['m'], labels: { policy: 'RoundRobin' } })
    const plain = workerEntry({ slot: 1, models: ['m'], priority: 50 })
    const other = [2, 3].map((slot) => workerEntry({ slot, models: ['n'] }))
    register(labelled, plain, ...other)
    balance.attempt(plain)
    balance.attempt(other[1])
    expect(countPicks(10, 'm')).toEqual({ 0: 5, 1: 5 })
    expect(countPicks(10, 'n')).toEqual({ 2: 10 })
    register(...other)
    register(...other, workerEntry({ slot: 0, models: ['m'] }), plain)
    expect(countPicks(10, 'm')).toEqual({ 0: 10 })
  })

  test('a label of another worker than the first has no effect', () => {
    register(three[0], workerEntry({ slot: 1, models: ['m'], labels: { policy: 'round_robin' } }))
    balance.attempt(three[0])
    expect(countPicks(10)).toEqual({ 1: 10 })
  })

  test('under cache_aware a prompt moves while its worker is unavailable or its breaker open, and returns', () => {
    balance = open({ defaultPolicy: 'cache_aware' })
    register(...three)
    const messages = [{ role: 'user', content: 'a long prompt about routing '.repeat(50) }]
    const rawBody = Buffer.from(JSON.stringify({ model: 'm', messages }))
    const prompt = { ...ctx, rawBody } as unknown as RelayContext
    const taker = () => {
      const attempt = balance.pick(prompt, 'm')
      attempt.release()
      return attempt.worker.slot
    }
    const home = taker()
    expect([taker(), taker()]).toEqual([home, home])
    balance.setStatus(home, 'not_ready')
    expect(taker()).not.toBe(home)
    balance.setStatus(home, 'ready')
    expect(taker()).toBe(home)
    const failing = Array.from({ length: 10 }, () => balance.attempt(three[home]))
    for (const attempt of failing) {
      attempt.failed()
      attempt.release()
    }
    expect(taker()).not.toBe(home)
  })

  test('an unknown label falls back to the default with one log line', () => {
    const warn = vi.fn()
    const log = { warn } as unknown as ThreadBalanceOptions['log']
    balance = open({ log, defaultPolicy: 'round_robin' })
    register(workerEntry({ slot: 0, models: ['m'], labels: { policy: 'fastest' } }), three[1])
    expect(countPicks(10)).toEqual({ 0: 5, 1: 5 })
    expect(warn).toHaveBeenCalledTimes(1)
    expect(warn.mock.calls[0][0]).toMatchObject({ model: 'm', policy: 'fastest', used: 'round_robin' })
  })

  test('of a plugin receive the request and removed workers, and are listed like the others', () => {
    const seen: unknown[] = []
    const removed: number[] = []
    const policy = (needsBody: boolean): Policy => ({
      name: 'last_one',
      needsBody,
      pick(candidates, request) {
        seen.push([request.model, request.body?.toString() ?? null, request.header('x-key')])
        return candidates.length - 1
      },
      onWorkerRemoved: (slot) => removed.push(slot),
    })
    balance.registry.register('last_one', () => policy(true))
    balance.registry.register('blind_one', () => policy(false))
    expect(balance.registry.names().slice(-2)).toEqual(['last_one', 'blind_one'])
    const first = workerEntry({ slot: 0, models: ['m'], labels: { policy: 'last_one' } })
    const blind = workerEntry({ slot: 3, models: ['n'], labels: { policy: 'blind_one' } })
    register(first, three[1], three[2], blind)
    expect(countPicks(1, 'm')).toEqual({ 2: 1 })
    expect(countPicks(1, 'n')).toEqual({ 3: 1 })
    expect(seen).toEqual([
      ['m', '{}', 'k1'],
      ['n', null, 'k1'],
    ])
    register(first, three[1], blind)
    expect(removed).toEqual([2, 2]) // both instances
    expect(() => balance.registry.register('LastOne', () => policy(false))).toThrow('registered twice')
  })

  test.each([-1, 3, Number.NaN])('that return %s result in 503 no_suitable_worker', (answer) => {
    balance.registry.register('refusing', () => ({ name: 'refusing', needsBody: false, pick: () => answer }))
    register(workerEntry({ slot: 0, models: ['m'], labels: { policy: 'refusing' } }))
    expect(errorOf(() => balance.pick(ctx, 'm'))).toMatchObject({ code: 'no_suitable_worker' })
    expect(balance.inFlight(0)).toBe(0)
  })

  test('a default policy that does not exist is named at boot', () => {
    balance.checkPolicies()
    const error = errorOf(() => open({ defaultPolicy: 'fastest' }).checkPolicies())
    expect(error).toMatchObject({ code: 'unknown_policy' })
    expect(error.message).toContain("'fastest'")
    expect(error.message).toContain('least_load')
  })
})

describe('onPick', () => {
  test('picks any registered ready worker; other results are ignored', () => {
    let answer: number | undefined
    const asked: string[] = []
    const hooked = pickContext({}, (_ctx, model) => {
      asked.push(model)
      return answer
    })
    balance = open()
    register(
      workerEntry({ slot: 0, models: [{ id: 'm', aliases: ['a'] }] }),
      workerEntry({ slot: 1, models: ['other'] }),
    )
    expect(balance.pick(hooked, 'm').worker.slot).toBe(0)
    answer = 1
    expect(balance.pick(hooked, 'm').worker.slot).toBe(1)
    expect(balance.inFlight(1)).toBe(1)
    balance.setStatus(1, 'draining')
    expect(balance.pick(hooked, 'm').worker.slot).toBe(0)
    for (answer of [17, -1, 0.5, Number.NaN]) expect(balance.pick(hooked, 'm').worker.slot).toBe(0)
    expect(new Set(asked)).toEqual(new Set(['m']))
  })
})

describe('the selected event', () => {
  test('is emitted once per pick with the canonical model and the policy or hook, but not for failed picks and named workers', () => {
    let answer: number | undefined
    const told: string[] = []
    const hooked = pickContext({}, () => answer)
    balance = open()
    balance.watch({
      selected: (worker, model, policy) => told.push(`${worker.slot} ${model} ${policy}`),
      breakers: { onWorkers() {}, onOutcome() {}, onTransition() {} },
    })
    register(
      workerEntry({ slot: 0, models: [{ id: 'm', aliases: ['a'] }], labels: { policy: 'round_robin' } }),
      workerEntry({ slot: 1, models: ['other'] }),
    )
    balance.pick(hooked, 'm')
    balance.pick(hooked, 'other')
    balance.pick(hooked, 'unknown')
    answer = 1
    balance.pick(hooked, 'm')
    answer = undefined
    expect(() => balance.pick(hooked, 'unknown-model')).toThrow(
      expect.objectContaining({ code: 'model_not_found' }),
    )
    balance.attempt(balance.workers[0])
    expect(told).toEqual(['0 m round_robin', '1 other least_load', '0 unknown least_load', '1 m hook'])
  })
})

describe('slots', () => {
  test('are allocated lowest first and start pending', () => {
    expect([balance.allocateSlot(), balance.allocateSlot(), balance.allocateSlot()]).toEqual([0, 1, 2])
    balance.setStatus(1, 'ready')
    balance.freeSlot(1)
    expect(balance.status(1)).toBe('pending')
    expect(balance.allocateSlot()).toBe(1)
    expect(balance.allocateSlot()).toBe(3)
  })

  test('are not reused while a request of the former worker is in flight', () => {
    const slot = balance.allocateSlot()
    register(workerEntry({ slot, models: ['m'] }))
    const attempt = balance.pick(ctx, 'm')
    table.publish([])
    balance.freeSlot(slot)
    expect(balance.allocateSlot()).toBe(1)
    attempt.release()
    expect(balance.allocateSlot()).toBe(slot)
  })

  test('run out with 503 worker_limit', () => {
    for (let i = 0; i < 64; i++) balance.allocateSlot()
    expect(errorOf(() => balance.allocateSlot())).toMatchObject({ code: 'worker_limit', status: 503 })
  })

  test('can only be allocated by control', () => {
    const data = open({ counters: new Counters(createCounters(4, 1), 1) })
    expect(() => data.allocateSlot()).toThrow('only control')
    expect(() => data.freeSlot(0)).toThrow('only control')
  })
})
