import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { defaultBreaker, pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'

const POLICIES = [
  'round_robin',
  'random',
  'least_load',
  'power_of_two',
  'cache_aware',
  'prefix_hash',
  'consistent_hashing',
  'manual',
  'bucket',
]
let nowMs = 0
let fleet: TestBalance

beforeEach(() => {
  nowMs = 1_000_000
})

function open(policy = 'round_robin', breaker: Partial<typeof defaultBreaker> = {}, size = 4): void {
  const options = { breaker: { ...defaultBreaker, ...breaker }, defaultPolicy: policy, now: () => nowMs }
  fleet = new TestBalance(options)
  fleet.register(...Array.from({ length: size }, (_, slot) => workerEntry({ slot })))
}

/** One request. @param isFailing workers whose attempts fail @returns the slot */
function ask(isFailing: (slot: number) => boolean, excluded: readonly number[] = [], key = 'k'): number {
  const attempt = fleet.balance.pick(pickContext({ 'x-weir-routing-key': key }), 'm', { excluded })
  const { slot } = attempt.worker
  if (isFailing(slot)) attempt.failed('answered')
  else attempt.succeeded()
  attempt.release()
  return slot
}

function fail(slot: number, times: number): void {
  for (let i = 0; i < times; i++) {
    const attempt = fleet.balance.attempt(fleet.balance.workers[slot])
    attempt.failed('answered')
    attempt.release()
  }
}

const slots = (count: number, isFailing = (_slot: number) => false) =>
  Array.from({ length: count }, (_, nth) => ask(isFailing, [], String(nth)))

test.each(POLICIES)(
  '%s: a worker that fails fast soon gets no requests, though it has the least load',
  (policy) => {
    open(policy)
    const seen = slots(200, (slot) => slot === 1)
    expect(seen.filter((slot) => slot === 1).length).toBeLessThanOrEqual(3)
  },
)

describe('an outlier', () => {
  beforeEach(() => {
    open()
    fail(0, 4)
  })

  test('gets one request per 5 s while it fails', () => {
    expect(slots(20)).not.toContain(0)
    nowMs += 5_000
    expect(slots(20, (slot) => slot === 0).filter((slot) => slot === 0)).toEqual([0])
    nowMs += 4_900
    expect(slots(20)).not.toContain(0)
  })

  test('gets more with each success, and is none after a few', () => {
    nowMs += 5_000
    const seen = slots(40)
    expect(seen.filter((slot) => slot === 0).length).toBeGreaterThanOrEqual(8)
    expect(fleet.balance.figures(0).failureShare).toBeLessThan(0.3)
  })

  test('is used if the request has tried all others', () => {
    expect(ask(() => false, [1, 2, 3])).toBe(0)
  })

  test('is used if the filter of the request accepts no other', () => {
    const accepts = ({ slot }: { slot: number }) => slot === 0
    const attempt = fleet.balance.pick(pickContext(), 'm', { accepts })
    expect(attempt.worker.slot).toBe(0)
    attempt.release()
  })

  test('is forgotten with its worker', () => {
    fleet.balance.allocateSlot()
    expect(fleet.balance.figures(0)).toMatchObject({ attempts: 0, failureShare: 0, lastError: null })
    expect(slots(4)).toContain(0)
  })
})

test('workers that all fail alike are no outliers', () => {
  open()
  for (let slot = 0; slot < 4; slot++) fail(slot, 5)
  expect(new Set(slots(8))).toEqual(new Set([0, 1, 2, 3]))
})

test('at most half of the workers are left out, and none if the setting is 0', () => {
  open()
  for (const slot of [0, 1, 2]) fail(slot, 5)
  expect(new Set(slots(20))).toEqual(new Set([2, 3]))
  open('round_robin', { maxOutlierShare: 0 })
  fail(0, 5)
  expect(slots(4)).toContain(0)
})

test('the probes of a breaker are not held back, and a closed breaker begins without failures', () => {
  open('round_robin', { failureThreshold: 5, successThreshold: 1, openMs: 1_000 })
  fail(0, 5)
  expect(fleet.balance.breakerState(0)).toBe('open')
  nowMs += 1_000
  expect(slots(4)).toContain(0)
  expect(fleet.balance.breakerState(0)).toBe('closed')
  expect(slots(8).filter((slot) => slot === 0)).toHaveLength(2)
})

describe('a worker with stalled streams', () => {
  const STALL_MS = defaultBreaker.stallMs

  test('gets no requests until its streams progress', () => {
    open()
    nowMs += STALL_MS
    fleet.balance.stalls.stalled(2)
    expect(fleet.balance.figures(2).isStalled).toBe(true)
    expect(slots(20)).not.toContain(2)
    fleet.balance.stalls.progressed(2)
    expect(slots(8)).toContain(2)
  })

  test('gets requests again when no thread sees the stall any more', () => {
    open()
    fleet.balance.stalls.stalled(2)
    nowMs += 3_000
    expect(slots(8)).toContain(2)
    fleet.balance.stalls.stalled(2)
    expect(slots(20)).not.toContain(2)
  })

  test('is used if all are stalled', () => {
    open()
    for (let slot = 0; slot < 4; slot++) fleet.balance.stalls.stalled(slot)
    expect(new Set(slots(8)).size).toBe(4)
  })
})

test('whatever fails, a pick finds a worker, and the share of failures stays between 0 and 1', () => {
  const steps = fc.array(fc.tuple(fc.nat(3), fc.boolean(), fc.nat(6_000)), { maxLength: 80 })
  fc.assert(
    fc.property(steps, fc.constantFrom(...POLICIES), (moves, policy) => {
      open(policy, { enabled: false })
      for (const [slot, fails, waitMs] of moves) {
        nowMs += waitMs
        if (fails) fail(slot, 1)
        ask((picked) => picked === slot && fails)
        const { failureShare, attempts, failures } = fleet.balance.figures(slot)
        expect(failureShare).toBeGreaterThanOrEqual(0)
        expect(failureShare).toBeLessThanOrEqual(1)
        expect(failures.answered).toBeLessThanOrEqual(attempts)
      }
    }),
    { numRuns: 50 },
  )
})

test('figures count attempts, failures by class and times of successes', () => {
  open()
  const attempt = fleet.balance.attempt(fleet.balance.workers[1])
  attempt.firstByte()
  attempt.succeeded()
  attempt.release()
  fail(1, 2)
  fleet.balance.noteError(fleet.balance.workers[1], 'status 500: out of memory')
  const figures = fleet.balance.figures(1)
  expect(figures).toMatchObject({ attempts: 3, failures: { answered: 2, silent: 0, unreachable: 0 } })
  expect(figures.durationMs).toBeGreaterThan(0)
  expect(figures.firstByteMs).toBeGreaterThan(0)
  expect(figures.lastError).toEqual({ text: 'status 500: out of memory', atMs: nowMs })
  expect(fleet.balance.figures(0).lastError).toBeNull()
})

test('rejected requests are counted until one is served, and are no failures', () => {
  open()
  for (const outcome of ['refused', 'refused', 'failed', 'refused'] as const) {
    const attempt = fleet.balance.attempt(fleet.balance.workers[1])
    attempt[outcome]()
    attempt.release()
  }
  expect(fleet.balance.refusals(1)).toBe(3)
  expect(fleet.balance.figures(1)).toMatchObject({ attempts: 4, durationMs: null })
  expect(fleet.balance.breakerRuns(1).failures).toBe(0)
  const served = fleet.balance.attempt(fleet.balance.workers[1])
  served.succeeded()
  served.release()
  expect(fleet.balance.refusals(1)).toBe(0)
})
