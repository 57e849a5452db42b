/** The candidates of one pick as passed to a policy. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { CandidateView, PickRequest } from '../contracts/policy.ts'
import type { EngineLoad, EngineLoads } from '../contracts/worker.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import type { ThreadBalanceOptions } from './thread-balance.ts'

const ctx = pickContext()

/** A balance whose policy passes the view to the test. */
function openSeeing(
  see: (view: CandidateView, request: PickRequest) => void,
  options: Partial<ThreadBalanceOptions> = {},
): TestBalance {
  const fleet = new TestBalance({ defaultPolicy: 'seeing', ...options })
  fleet.balance.registry.register('seeing', () => ({
    name: 'seeing',
    needsBody: false,
    pick(view, request) {
      see(view, request)
      return 0
    },
  }))
  return fleet
}

function report(atMs: number, periodMs?: number): EngineLoad {
  return {
    periodMs,
    queuedTokens: 1,
    usedTokens: 2,
    kvUsage: 0.5,
    tokensPerSecond: 9,
    atMs,
  }
}

describe('the view', () => {
  const workers = [9, 3, 40, 12].map((slot) => workerEntry({ slot, models: ['m'] }))

  test('has slots, and indexes by slot, of the candidates only', () => {
    const seen: unknown[] = []
    const fleet = openSeeing((view) => {
      const slots = Array.from({ length: view.length }, (_, index) => view.slot(index))
      expect(slots.map((slot) => view.indexOfSlot(slot))).toEqual([...slots.keys()])
      for (let slot = -2; slot < 70; slot++) {
        if (!slots.includes(slot)) expect(view.indexOfSlot(slot)).toBe(-1)
      }
      seen.push(slots)
    })
    fleet.register(...workers)
    fleet.balance.pick(ctx, 'm')
    fleet.balance.setStatus(3, 'draining')
    fleet.balance.pick(ctx, 'm')
    fleet.balance.pick(ctx, 'm', { excluded: [9] })
    fleet.balance.setStatus(3, 'ready')
    fleet.balance.pick(ctx, 'm', { excluded: [40, 12] })
    expect(seen).toEqual([
      [9, 3, 40, 12],
      [9, 40, 12],
      [40, 12],
      [9, 3],
    ])
  })

  test('has all members of the tier, in the same array until the table changes', () => {
    const seen: (readonly unknown[])[] = []
    const fleet = openSeeing((view) => seen.push(view.members))
    fleet.register(...workers)
    fleet.balance.setStatus(9, 'failed')
    fleet.balance.pick(ctx, 'm')
    fleet.balance.pick(ctx, 'm')
    fleet.register(...workers.slice(1))
    fleet.balance.pick(ctx, 'm')
    expect(seen[0]).toEqual(workers)
    expect(seen[1]).toBe(seen[0])
    expect(seen[2]).toEqual(workers.slice(1))
  })

  test('has engine reports, except those older than three poll periods', () => {
    let nowMs = 5_000_000
    const loads: { current: EngineLoads } = { current: { bySlot: [] } }
    const seen: (EngineLoad | null)[][] = []
    const see = (view: CandidateView) =>
      seen.push(Array.from({ length: view.length }, (_, i) => view.load(i)))
    const fleet = openSeeing(see, { loads, now: () => nowMs })
    fleet.register(workerEntry({ slot: 0 }), workerEntry({ slot: 1 }), workerEntry({ slot: 2 }))
    const [fresh, old] = [report(nowMs), report(nowMs - 4_000, 2_000)]
    fleet.balance.pick(ctx, 'm')
    loads.current = { bySlot: [fresh, old] }
    fleet.balance.pick(ctx, 'm')
    nowMs += 2_001
    fleet.balance.pick(ctx, 'm')
    nowMs += 30_000 - 2_001
    loads.current = { bySlot: [null, null, fresh] }
    fleet.balance.pick(ctx, 'm')
    nowMs += 1
    fleet.balance.pick(ctx, 'm')
    expect(seen).toEqual([
      [null, null, null],
      [fresh, old, null],
      [fresh, null, null],
      [null, null, fresh],
      [null, null, null],
    ])
  })
})

describe('overloaded workers', () => {
  const NOW_MS = 5_000_000
  const overloaded: EngineLoad = { ...report(NOW_MS, 4_000), isOverloaded: true }
  const worker = (slot: number, priority: number) => workerEntry({ slot, models: ['m'], priority })
  const ONE_TIER = [0, 1, 2].map((slot) => worker(slot, 50))

  function open(current: EngineLoads, workers = ONE_TIER): { fleet: TestBalance; seen: number[][] } {
    const seen: number[][] = []
    const see = (view: CandidateView) =>
      seen.push(Array.from({ length: view.length }, (_, index) => view.slot(index)))
    const fleet = openSeeing(see, { loads: { current }, now: () => NOW_MS })
    fleet.register(...workers)
    return { fleet, seen }
  }

  function errorOf(fleet: TestBalance, options = {}): GatewayError {
    try {
      fleet.balance.pick(ctx, 'm', options)
    } catch (error) {
      return error as GatewayError
    }
    throw new Error('a worker was picked')
  }

  test('are not candidates; an old report no longer counts', () => {
    const old = { ...overloaded, atMs: NOW_MS - 12_001 }
    const { fleet, seen } = open({ bySlot: [overloaded, report(NOW_MS), old], overload: 'avoid' })
    fleet.balance.pick(ctx, 'm')
    expect(seen).toEqual([[1, 2]])
  })

  test('of a better tier come after others of a worse one, and are picked if there is no other', () => {
    const tiers = [worker(0, 80), worker(1, 50)]
    const { fleet, seen } = open({ bySlot: [overloaded, null], overload: 'avoid' }, tiers)
    fleet.balance.pick(ctx, 'm')
    fleet.balance.setStatus(1, 'not_ready')
    fleet.balance.pick(ctx, 'm')
    expect(seen).toEqual([[1], [0]])
  })

  test('get no requests with shed, until they report again', () => {
    const bySlot = [overloaded, { ...overloaded, atMs: NOW_MS - 1_500 }, null]
    const { fleet, seen } = open({ bySlot, overload: 'shed' })
    fleet.balance.pick(ctx, 'm')
    expect(seen).toEqual([[2]])
    fleet.balance.setStatus(2, 'not_ready')
    const error = errorOf(fleet)
    expect([error.code, error.headers]).toEqual(['worker_overload_protection_shed', ['retry-after', '3']])
    const accepts = ({ slot }: { slot: number }) => slot === 2
    expect(errorOf(fleet, { accepts }).code).toBe('no_available_workers')
  })

  test('any fleet: the remaining candidates are the best ones', () => {
    const member = fc.record({
      priority: fc.constantFrom(10, 50),
      isReady: fc.boolean(),
      isOverloaded: fc.boolean(),
      isTried: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.array(member, { minLength: 1, maxLength: 6 }),
        fc.constantFrom('avoid' as const, 'shed' as const),
        (members, mode) => {
          const bySlot = members.map(({ isOverloaded }) => (isOverloaded ? overloaded : null))
          const overload = members.some(({ isOverloaded }) => isOverloaded) ? mode : undefined
          const workers = members.map(({ priority }, slot) => worker(slot, priority))
          const { fleet, seen } = open({ bySlot, overload }, workers)
          for (const [slot, { isReady }] of members.entries())
            if (!isReady) fleet.balance.setStatus(slot, 'not_ready')

          const ready = [...members.keys()].filter((slot) => members[slot].isReady)
          const isFree = (slot: number) => !members[slot].isOverloaded
          const isNew = (slot: number) => !members[slot].isTried
          const inOrder =
            mode === 'shed'
              ? [ready.filter(isFree).filter(isNew), ready.filter(isFree)]
              : [ready.filter(isFree).filter(isNew), ready.filter(isNew), ready]
          const wanted = inOrder.find((slots) => slots.length > 0)
          const excluded = [...members.keys()].filter((slot) => members[slot].isTried)
          if (wanted === undefined) {
            const code = ready.length > 0 ? 'worker_overload_protection_shed' : 'no_available_workers'
            expect(errorOf(fleet, { excluded }).code).toBe(code)
          } else {
            const best = Math.max(...wanted.map((slot) => members[slot].priority))
            fleet.balance.pick(ctx, 'm', { excluded })
            expect(seen[0]).toEqual(wanted.filter((slot) => members[slot].priority === best))
          }
        },
      ),
    )
  })
})

describe('the request', () => {
  test('has leg and token ids during one pick', () => {
    let kept: PickRequest | undefined
    const seen: unknown[] = []
    const fleet = openSeeing((_, request) => {
      kept = request
      seen.push([request.leg, request.tokenIds, request.model])
    })
    fleet.register(workerEntry({ slot: 0, workerType: 'decode' }), workerEntry({ slot: 1 }))
    const tokenIds = Uint32Array.of(1, 2, 3)
    fleet.balance.pick(ctx, 'm', { leg: 'decode', tokenIds })
    expect(kept?.tokenIds).toBeNull()
    fleet.balance.pick(ctx, '')
    expect(seen).toEqual([
      ['decode', tokenIds, 'm'],
      ['whole', null, 'unknown'],
    ])
  })
})

describe('the report of a pick', () => {
  test('is made on request: the tier at the time, and the explanation of the policy', () => {
    const fleet = new TestBalance({ defaultPolicy: 'wordy' })
    fleet.balance.registry.register('wordy', () => ({
      name: 'wordy',
      needsBody: false,
      pick: () => 1,
      explain: () => 'the second',
    }))
    fleet.register(...[0, 1, 2].map((slot) => workerEntry({ slot, models: ['m'] })))
    expect(fleet.balance.pick(ctx, 'm').choice).toBeNull()
    fleet.balance.setStatus(0, 'draining')
    const { choice } = fleet.balance.pick(ctx, 'm', { report: true })
    const row = { breaker: 'closed', isAvailable: true, isSuspect: false, inFlight: 0, loadScore: 1 }
    expect(choice).toEqual({
      explanation: 'the second',
      candidates: [
        { ...row, workerId: 'worker-0', url: 'http://worker-0:8000', isAvailable: false },
        { ...row, workerId: 'worker-1', url: 'http://worker-1:8000', inFlight: 1, loadScore: 2 },
        { ...row, workerId: 'worker-2', url: 'http://worker-2:8000' },
      ],
    })
  })

  test('has 64 workers at most, open breakers, and null for a policy without an explanation', () => {
    const fleet = new TestBalance({ defaultPolicy: 'random' })
    const workers = Array.from({ length: 64 }, (_, slot) => workerEntry({ slot }))
    fleet.register(...workers, { ...workerEntry({ slot: 63 }), id: 'one-too-many' })
    for (let i = 0; i < 10; i++) fleet.balance.attempt(workers[5]).failed()
    const { choice } = fleet.balance.pick(ctx, 'm', { report: true })
    expect(choice?.explanation).toBeNull()
    expect(choice?.candidates).toHaveLength(64)
    expect(choice?.candidates[5]).toMatchObject({ breaker: 'open', isAvailable: false, inFlight: 10 })
  })

  test('is null if no policy picked', () => {
    const fleet = new TestBalance()
    const hooked = pickContext({}, () => 0)
    fleet.register(workerEntry({ slot: 0 }))
    expect(fleet.balance.pick(hooked, 'm', { report: true })).toMatchObject({ policy: 'hook', choice: null })
    expect(fleet.balance.attempt(fleet.balance.workers[0])).toMatchObject({ policy: 'fixed', choice: null })
  })
})
