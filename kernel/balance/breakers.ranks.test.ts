/** Breakers of the ranks of one data-parallel engine: connection failures of its address count for all ranks. */
import { beforeEach, describe, expect, test } from 'vitest'
import { defaultBreaker, pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { Attempt, Fault } from './worker-balance.ts'

const ctx = pickContext()
const ENGINE = 'http://engine:1'
let nowMs: number
let fleet: TestBalance

const rank = (slot: number, baseUrl = ENGINE) =>
  workerEntry({
    slot,
    models: ['m'],
    url: `${baseUrl}@${slot}`,
    dataParallel: { baseUrl, rank: slot, size: 3 },
  })
const states = (...slots: number[]) => slots.map((slot) => fleet.balance.breakerState(slot))

function end(attempt: Attempt, fault: Fault | null): void {
  if (fault === null) attempt.succeeded()
  else attempt.failed(fault)
  attempt.release()
}

function failAt(slot: number, fault: Fault, times = 10): void {
  const [worker] = fleet.balance.workers.filter((entry) => entry.slot === slot)
  for (let count = 0; count < times; count++) end(fleet.balance.attempt(worker), fault)
}

beforeEach(() => {
  nowMs = 1_000_000
  fleet = new TestBalance({ breaker: defaultBreaker, defaultPolicy: 'round_robin', now: () => nowMs })
  fleet.register(
    rank(0),
    rank(1),
    rank(2),
    rank(3, 'http://other:1'),
    workerEntry({ slot: 4, models: ['x'] }),
  )
})

describe('ranks of one engine', () => {
  test('an engine that refuses connections opens the breakers of all its ranks, and of no other worker', () => {
    failAt(1, 'unreachable', 9)
    expect(states(0, 1, 2, 3, 4)).toEqual(Array(5).fill('closed'))
    failAt(1, 'unreachable', 1)
    expect(states(0, 1, 2, 3, 4)).toEqual(['open', 'open', 'open', 'closed', 'closed'])
    for (let count = 0; count < 5; count++) {
      const attempt = fleet.balance.pick(ctx, 'm')
      expect(attempt.worker.slot).toBe(3)
      end(attempt, null)
    }
  })

  test.each(['answered', 'silent'] as const)(
    'a failure of a rank itself (%s) does not affect the others',
    (fault) => {
      failAt(1, fault)
      expect(states(0, 1, 2)).toEqual(['closed', 'open', 'closed'])
    },
  )

  test('the first recovered rank half-opens the others before their time', () => {
    fleet.register(rank(0), rank(1))
    failAt(0, 'silent')
    nowMs += 30_000
    failAt(1, 'unreachable')
    nowMs += 30_000
    expect(states(0, 1)).toEqual(['half_open', 'open'])
    for (let count = 0; count < 3; count++) {
      const probe = fleet.balance.pick(ctx, 'm')
      expect(probe.worker.slot).toBe(0)
      end(probe, null)
    }
    expect(states(0, 1)).toEqual(['closed', 'half_open'])
  })

  test('a rank with error responses of its own stays open when another recovers', () => {
    fleet.register(rank(0), rank(1))
    failAt(0, 'answered')
    nowMs += 30_000
    failAt(1, 'answered')
    nowMs += 30_000
    expect(states(0, 1)).toEqual(['half_open', 'open'])
    for (let count = 0; count < 3; count++) end(fleet.balance.pick(ctx, 'm'), null)
    expect(states(0, 1)).toEqual(['closed', 'open'])
  })

  test('ranks that are registered later share the state too', () => {
    fleet.register(rank(0))
    fleet.register(rank(0), rank(1))
    failAt(0, 'unreachable')
    expect(states(0, 1)).toEqual(['open', 'open'])
  })
})
