/** Circuit breakers as seen by picking and its callers. */
import { beforeEach, describe, expect, test } from 'vitest'
import { defaultBreaker, errorOf, pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { BreakerConfig } from '../config/breaker-config.ts'
import type { WorkerResilience } from '../contracts/worker.ts'
import type { Attempt } from './worker-balance.ts'

const ctx = pickContext()
let nowMs: number
let fleet: TestBalance

function open(breaker: Partial<BreakerConfig> = {}): TestBalance {
  fleet = new TestBalance({
    breaker: { ...defaultBreaker, ...breaker },
    defaultPolicy: 'round_robin',
    now: () => nowMs,
  })
  return fleet
}

function worker(slot: number, resilience: WorkerResilience | null = null) {
  return workerEntry({ slot, models: ['m'], resilience })
}

function pick(request = ctx): Attempt {
  return fleet.balance.pick(request, 'm')
}

/** Runs one request from pick to release. @returns the slot of its worker */
function run(outcome: 'succeeded' | 'failed' | 'none', request = ctx): number {
  const attempt = pick(request)
  if (outcome !== 'none') attempt[outcome]()
  attempt.release()
  return attempt.worker.slot
}

function fail(times: number): void {
  for (let i = 0; i < times; i++) run('failed')
}

const refusal = () => errorOf(() => pick())

beforeEach(() => {
  nowMs = 1_000_000
  open()
})

describe('a breaker opens', () => {
  test('after 10 failures in a row; then the worker gets nothing for 60 s, then one probe', () => {
    fleet.register(worker(0))
    fail(9)
    expect(fleet.balance.breakerState(0)).toBe('closed')
    fail(1)
    expect(fleet.balance.breakerState(0)).toBe('open')
    expect(refusal()).toMatchObject({ code: 'no_available_workers', status: 503 })
    nowMs += 59_999
    expect(refusal()).toMatchObject({ code: 'no_available_workers' })
    nowMs += 1
    expect(fleet.balance.breakerState(0)).toBe('half_open')
    const probe = pick()
    expect(probe.worker.slot).toBe(0)
    expect(refusal()).toMatchObject({ code: 'no_available_workers' })
    probe.release()
  })

  test('and is half-open at once when the worker answers its health probes again', () => {
    const entry = worker(0)
    fleet.register(entry)
    fleet.balance.recovered(entry)
    expect(fleet.balance.breakerState(0)).toBe('closed')
    fail(10)
    fleet.balance.recovered(entry)
    expect(fleet.balance.breakerState(0)).toBe('half_open')
    run('failed')
    expect(fleet.balance.breakerState(0)).toBe('open')
  })

  test('not while successes interrupt the failures', () => {
    fleet.register(worker(0))
    for (let i = 0; i < 20; i++) {
      fail(9)
      run('succeeded')
    }
    expect(fleet.balance.breakerState(0)).toBe('closed')
    expect(fleet.balance.breakerRuns(0)).toEqual({ failures: 0, successes: 0 })
  })

  test('never for attempts without an outcome, and once per attempt at most', () => {
    fleet.register(worker(0))
    for (let i = 0; i < 30; i++) run('none')
    const attempt = pick()
    for (let i = 0; i < 30; i++) attempt.failed()
    attempt.succeeded()
    attempt.release()
    for (let i = 0; i < 30; i++) attempt.failed()
    expect(fleet.balance.breakerRuns(0).failures).toBe(1)
  })

  test('for concurrent attempts too', () => {
    fleet.register(worker(0))
    const attempts = Array.from({ length: 12 }, pick)
    for (const attempt of attempts) attempt.failed()
    expect(fleet.balance.breakerState(0)).toBe('open')
    for (const attempt of attempts) attempt.release()
  })

  test('for failures of attempts at a named worker too', () => {
    fleet.register(worker(0))
    for (let i = 0; i < 10; i++) {
      const attempt = fleet.balance.attempt(fleet.balance.workers[0])
      attempt.failed()
      attempt.release()
    }
    expect(fleet.balance.breakerState(0)).toBe('open')
  })

  test('without affecting other workers', () => {
    fleet = new TestBalance({ breaker: { ...defaultBreaker, maxOutlierShare: 0 } })
    fleet.register(worker(0), worker(1))
    for (let i = 0; i < 20; i++) {
      const attempt = pick()
      if (attempt.worker.slot === 0) attempt.failed()
      else attempt.succeeded()
      attempt.release()
    }
    expect([0, 1].map((slot) => fleet.balance.breakerState(slot))).toEqual(['open', 'closed'])
    expect(Array.from({ length: 5 }, () => run('succeeded'))).toEqual([1, 1, 1, 1, 1])
  })

  test('and lower tiers and wildcard workers take over', () => {
    fleet.register(
      workerEntry({ slot: 0, models: ['m'], priority: 90 }),
      workerEntry({ slot: 1, models: ['m'] }),
      workerEntry({ slot: 2 }),
    )
    expect(run('none')).toBe(0)
    fail(10)
    expect(run('none')).toBe(1)
    fail(10)
    expect(run('none')).toBe(2)
  })

  test('and a hook that picks the worker is ignored', () => {
    const hooked = pickContext({}, () => 0)
    fleet.register(worker(0), worker(1))
    for (let i = 0; i < 10; i++) expect(run('failed', hooked)).toBe(0)
    expect(run('none', hooked)).toBe(1)
  })
})

describe('when every breaker is open', () => {
  test('retry-after is the time until the first of them admits a probe', () => {
    fleet.register(worker(0, { openMs: 90_000 }), worker(1))
    fail(20)
    expect(refusal()).toMatchObject({ status: 503, isRetryable: true, headers: ['retry-after', '60'] })
    nowMs += 58_500
    expect(refusal().headers).toEqual(['retry-after', '2'])
  })

  test('slots already tried are not picked again either', () => {
    fleet.register(worker(0))
    fail(10)
    expect(errorOf(() => fleet.balance.pick(ctx, 'm', { excluded: [0] })).code).toBe('no_available_workers')
  })
})

describe('a half-open breaker', () => {
  function halfOpen(breaker: Partial<BreakerConfig> = {}): void {
    open(breaker)
    fleet.register(worker(0))
    fail(10)
    nowMs += 60_000
  }

  test('closes after 3 successes, not after 2', () => {
    halfOpen()
    run('succeeded')
    run('succeeded')
    expect(fleet.balance.breakerState(0)).toBe('half_open')
    expect(fleet.balance.breakerRuns(0)).toEqual({ failures: 0, successes: 2 })
    run('succeeded')
    expect(fleet.balance.breakerState(0)).toBe('closed')
    fail(9)
    expect(fleet.balance.breakerState(0)).toBe('closed')
  })

  test('one failure opens it again, for the full time', () => {
    halfOpen()
    run('succeeded')
    run('succeeded')
    nowMs += 5_000
    run('failed')
    nowMs += 59_999
    expect(refusal().code).toBe('no_available_workers')
    nowMs += 1
    expect(run('succeeded')).toBe(0)
    expect(fleet.balance.breakerRuns(0)).toEqual({ failures: 0, successes: 1 })
  })

  test('releases a probe permit when the outcome is known, or can no longer be known', () => {
    halfOpen()
    const first = pick()
    first.succeeded()
    const second = pick() // the first is still streaming
    second.release()
    second.release()
    const third = pick()
    expect(refusal().code).toBe('no_available_workers')
    first.release()
    expect(refusal().code).toBe('no_available_workers')
    third.release()
    expect(fleet.balance.inFlight(0)).toBe(0)
  })

  test('admits as many concurrent probes as configured', () => {
    halfOpen({ halfOpenProbes: 3 })
    const probes = [pick(), pick(), pick()]
    expect(refusal().code).toBe('no_available_workers')
    probes[1].release()
    pick()
    expect(refusal().code).toBe('no_available_workers')
  })

  test('replaces a probe that runs for more than a minute, by one', () => {
    halfOpen()
    const long = pick()
    nowMs += 59_999
    expect(refusal().code).toBe('no_available_workers')
    nowMs += 1
    const next = pick()
    expect(refusal().code).toBe('no_available_workers')
    long.succeeded()
    next.succeeded()
    run('succeeded')
    expect(fleet.balance.breakerState(0)).toBe('closed')
  })

  test('ignores attempts that started before it opened', () => {
    fleet.register(worker(0))
    const old = Array.from({ length: 4 }, pick)
    fail(10)
    old[0].failed()
    nowMs += 60_000
    run('succeeded')
    old[1].failed()
    old[2].succeeded()
    expect(fleet.balance.breakerRuns(0)).toEqual({ failures: 0, successes: 1 })
    run('succeeded')
    run('succeeded')
    old[3].failed()
    expect(fleet.balance.breakerState(0)).toBe('closed')
    expect(fleet.balance.breakerRuns(0).failures).toBe(0)
  })

  test('shares requests with other workers: only its probe goes to it', () => {
    open()
    fleet.register(worker(0, { failureThreshold: 1 }), worker(1))
    expect(run('failed')).toBe(0)
    expect([run('none'), run('none')]).toEqual([1, 1])
    nowMs += 60_000
    const slots = Array.from({ length: 6 }, () => pick().worker.slot)
    expect(slots.filter((slot) => slot === 0)).toHaveLength(1)
  })
})

describe('settings of a worker', () => {
  test('override the kernel settings', () => {
    fleet.register(worker(0, { failureThreshold: 2, successThreshold: 1, openMs: 500 }))
    fail(2)
    expect(refusal().headers).toEqual(['retry-after', '1'])
    nowMs += 500
    run('succeeded')
    expect(fleet.balance.breakerState(0)).toBe('closed')
  })

  test('a disabled breaker never opens, and an open one stops excluding its worker', () => {
    fleet.register(worker(0, { disableBreaker: true }))
    fail(100)
    expect(fleet.balance.breakerState(0)).toBe('closed')
    fleet.register(worker(1))
    fail(10)
    fleet.register(worker(1, { disableBreaker: true }))
    expect(fleet.balance.breakerState(1)).toBe('closed')
    expect(run('none')).toBe(1)
  })

  test('failures do not count if breakers are disabled in the kernel', () => {
    open({ enabled: false })
    fleet.register(worker(0, { failureThreshold: 1, disableBreaker: false }))
    fail(100)
    expect(fleet.balance.breakerState(0)).toBe('closed')
  })

  test('a threshold above the counter maximum still opens', () => {
    fleet.register(worker(0, { failureThreshold: 4_000_000_000, openMs: 40_000_000_000 }))
    fail(65_534)
    expect(fleet.balance.breakerState(0)).toBe('closed')
    fail(1)
    expect(fleet.balance.breakerState(0)).toBe('open')
    nowMs += 2_147_483_646
    expect(refusal().code).toBe('no_available_workers')
  })
})

describe('during the life of a worker', () => {
  test('a change of the worker keeps its breaker', () => {
    fleet.register(worker(0))
    fail(10)
    fleet.table.publish([{ ...worker(0), revision: 2 }])
    expect(fleet.balance.breakerState(0)).toBe('open')
  })

  test('a new worker in a reused row starts closed, and old attempts do not count for it', () => {
    const slot = fleet.balance.allocateSlot()
    fleet.register(worker(slot))
    const attempts = Array.from({ length: 10 }, pick)
    for (const attempt of attempts.slice(1)) attempt.failed()
    attempts[0].failed()
    for (const attempt of attempts) attempt.release()
    fleet.table.publish([])
    fleet.balance.freeSlot(slot)
    expect(fleet.balance.allocateSlot()).toBe(slot)
    fleet.register({ ...worker(slot), id: 'next' })
    expect(fleet.balance.breakerState(slot)).toBe('closed')
    expect(fleet.balance.breakerRuns(slot)).toEqual({ failures: 0, successes: 0 })
    expect(run('succeeded')).toBe(slot)
  })

  test('a clock that is set back by hours does not keep a breaker open for hours', () => {
    fleet.register(worker(0))
    fail(10)
    nowMs -= 3 * 3_600_000
    expect(fleet.balance.breakerState(0)).toBe('half_open')
  })

  test('a breaker that is not used for weeks is half-open then', () => {
    fleet.register(worker(0))
    fail(10)
    for (let days = 1; days <= 60; days += 7) {
      nowMs += 7 * 86_400_000
      expect(fleet.balance.breakerState(0)).toBe('half_open')
    }
  })
})
