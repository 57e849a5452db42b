/** Prefill and decode workers: candidates and policy of each leg, and when a pair is used. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { errorOf, pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { PickLeg } from '../contracts/policy.ts'
import type { ModelCard, WorkerType } from '../contracts/worker.ts'
import type { ThreadBalanceOptions } from './thread-balance.ts'

const ctx = pickContext()
let fleet: TestBalance

function open(options: Partial<ThreadBalanceOptions> = {}): void {
  fleet = new TestBalance({ defaultPolicy: 'round_robin', ...options })
}

function worker(slot: number, workerType: WorkerType, models: readonly (string | ModelCard)[] = ['m']) {
  return workerEntry({ slot, workerType, models })
}

/** Slots of sequential picks for a leg. */
function slots(times: number, leg: PickLeg, model = 'm'): number[] {
  return Array.from({ length: times }, () => {
    const attempt = fleet.balance.pick(ctx, model, { leg })
    attempt.release()
    return attempt.worker.slot
  })
}

function pairsOf(times: number, model = 'm'): number {
  let pairs = 0
  for (let i = 0; i < times; i++) if (fleet.balance.usesPair(model)) pairs++
  return pairs
}

const pickError = (leg: PickLeg, model = 'm') => errorOf(() => fleet.balance.pick(ctx, model, { leg }))

beforeEach(() => open())

describe('each leg', () => {
  test('round_robin rotates per leg, so pools of one size both use all their workers', () => {
    fleet.register(worker(0, 'prefill'), worker(1, 'prefill'), worker(2, 'decode'), worker(3, 'decode'))
    const seen = Array.from({ length: 4 }, () => [...slots(1, 'prefill'), ...slots(1, 'decode')])
    expect(seen).toEqual([
      [0, 2],
      [1, 3],
      [0, 2],
      [1, 3],
    ])
  })

  test('goes to workers of its type only, those that list the model before wildcard ones', () => {
    fleet.register(
      worker(0, 'prefill', []),
      worker(1, 'regular'),
      worker(2, 'decode', ['other']),
      worker(3, 'prefill'),
      worker(4, 'decode', []),
    )
    expect(slots(2, 'prefill')).toEqual([3, 3])
    expect(slots(2, 'decode')).toEqual([4, 4])
    expect(slots(2, 'whole')).toEqual([1, 1])
    expect(slots(2, 'prefill', 'unlisted')).toEqual([0, 0])
    fleet.balance.setStatus(3, 'not_ready')
    expect(slots(2, 'prefill')).toEqual([0, 0])
  })

  test('of a request without a model goes to any worker of its type', () => {
    fleet.register(worker(0, 'prefill', ['a']), worker(1, 'prefill', ['b']), worker(2, 'decode', ['c']))
    expect(new Set(slots(4, 'prefill', 'unknown'))).toEqual(new Set([0, 1]))
    expect(slots(1, 'decode', '')).toEqual([2])
  })

  test('resolves the aliases of the canonical model', () => {
    fleet.register(worker(0, 'prefill', [{ id: 'm', aliases: ['a'] }]), worker(1, 'decode'))
    expect(slots(1, 'decode', 'a')).toEqual([1])
    expect(fleet.balance.usesPair('a')).toBe(true)
  })

  test('has the policy of its own setting, otherwise the main one', () => {
    open({ defaultPolicy: 'power_of_two', decodePolicy: 'RoundRobin' })
    fleet.register(worker(0, 'prefill'), worker(1, 'decode'), worker(2, 'regular'))
    const policies = (['whole', 'prefill', 'decode'] as const).map(
      (leg) => fleet.balance.pick(ctx, 'm', { leg }).policy,
    )
    expect(policies).toEqual(['power_of_two', 'power_of_two', 'round_robin'])
  })

  test('uses the policy label of its own first worker', () => {
    const labelled = { ...worker(0, 'prefill'), labels: { policy: 'random' } }
    fleet.register(worker(2, 'regular'), labelled, worker(1, 'decode'))
    expect(fleet.balance.pick(ctx, 'm', { leg: 'prefill' }).policy).toBe('random')
    expect(fleet.balance.pick(ctx, 'm', { leg: 'decode' }).policy).toBe('round_robin')
    expect(fleet.balance.pick(ctx, 'm').policy).toBe('round_robin')
  })

  test('has its own breaker per worker', () => {
    fleet.register(worker(0, 'prefill'), worker(1, 'decode'))
    for (let i = 0; i < 10; i++) {
      const attempt = fleet.balance.pick(ctx, 'm', { leg: 'decode' })
      attempt.failed()
      attempt.release()
    }
    expect(slots(1, 'prefill')).toEqual([0])
    expect(pickError('decode')).toMatchObject({
      code: 'server_selection_failed',
      headers: ['retry-after', '60'],
    })
  })

  test('uses the pick of a hook if the worker has its type', () => {
    const hooked = pickContext({}, () => 1)
    open()
    fleet.register(worker(0, 'prefill'), worker(1, 'decode'))
    expect(fleet.balance.pick(hooked, 'm', { leg: 'prefill' })).toMatchObject({ policy: 'round_robin' })
    expect(fleet.balance.pick(hooked, 'm', { leg: 'decode' })).toMatchObject({ policy: 'hook' })
  })
})

describe('a pair without workers for one leg', () => {
  test.each(['prefill', 'decode'] as const)(
    'is 503 server_selection_failed, with the missing leg %s',
    (missing) => {
      fleet.register(worker(0, 'prefill'), worker(1, 'decode'))
      fleet.balance.setStatus(missing === 'prefill' ? 0 : 1, 'not_ready')
      const error = pickError(missing)
      expect(error).toMatchObject({ code: 'server_selection_failed', status: 503, isRetryable: true })
      expect(error.message).toContain(`no ${missing} worker`)
      expect(error.message).toContain("'m'")
    },
  )

  test('is also reported if no worker of that type was ever registered', () => {
    fleet.register(worker(0, 'prefill'))
    expect(fleet.balance.usesPair('m')).toBe(false)
    const error = pickError('whole')
    expect(error).toMatchObject({ code: 'server_selection_failed', status: 503 })
    expect(error.message).toContain('no decode worker')
    fleet.register(worker(1, 'decode'))
    expect(pickError('whole').message).toContain('no prefill worker')
    expect(pickError('prefill').message).toContain('no prefill worker')
  })

  test('complete requests for a model with pairs only are rejected with the reason; other models are not found', () => {
    fleet.register(worker(0, 'prefill'), worker(1, 'decode'))
    expect(pickError('whole').message).toContain('only pairs of prefill and decode workers')
    expect(pickError('whole', 'x').code).toBe('model_not_found')
  })
})

describe('a pair is used', () => {
  const pair = [worker(0, 'prefill'), worker(1, 'decode')]

  test('if both types serve the model and no other worker does, available or not', () => {
    fleet.register(...pair)
    expect(fleet.balance.usesPair('m')).toBe(true)
    expect(fleet.balance.usesPair('unknown')).toBe(true)
    expect(fleet.balance.usesPair('x')).toBe(false)
    fleet.balance.setStatus(1, 'failed')
    expect(fleet.balance.usesPair('m')).toBe(true)
  })

  test('never while one type is missing', () => {
    fleet.register(pair[0], worker(2, 'regular'))
    expect(pairsOf(50)).toBe(0)
  })

  test('in proportion to the number of workers if regular ones serve the model too', () => {
    let draw = 0
    open({ random: () => (draw++ % 100) / 100 })
    fleet.register(...pair, worker(2, 'regular'), worker(3, 'regular'), worker(4, 'regular'))
    expect(pairsOf(100)).toBe(40)
  })

  test('always while the regular workers are unavailable, never while one leg is', () => {
    fleet.register(...pair, worker(2, 'regular'))
    fleet.balance.setStatus(2, 'draining')
    expect(pairsOf(50)).toBe(50)
    fleet.balance.setStatus(2, 'ready')
    fleet.balance.setStatus(0, 'not_ready')
    expect(pairsOf(50)).toBe(0)
    fleet.balance.setStatus(2, 'draining')
    fleet.balance.setStatus(1, 'not_ready')
    expect(fleet.balance.pick.bind(fleet.balance, ctx, 'm')).toThrow("model 'm'")
  })

  test('rather than wildcard workers if it lists the model, and vice versa', () => {
    fleet.register(...pair, worker(2, 'regular', []))
    expect(pairsOf(50)).toBe(50)
    fleet.register(worker(0, 'prefill', []), worker(1, 'decode'), worker(2, 'regular'))
    expect(pairsOf(50)).toBe(0)
  })
})

describe('policies that a leg cannot use', () => {
  test('are rejected at boot in a setting', () => {
    const passthrough = { name: 'passthrough', needsBody: false, pick: () => 0 }
    const check = (options: Partial<ThreadBalanceOptions>) => {
      open(options)
      registerMissing('passthrough', passthrough)
      registerMissing('bucket', { ...passthrough, name: 'bucket' })
      return errorOf(() => fleet.balance.checkPolicies())
    }
    expect(check({ decodePolicy: 'bucket' })).toMatchObject({ code: 'policy_not_allowed' })
    expect(check({ decodePolicy: 'bucket' }).message).toContain("kernel.decodePolicy cannot be 'bucket'")
    expect(check({ prefillPolicy: 'PassThrough' }).message).toContain('kernel.prefillPolicy')
    expect(check({ prefillPolicy: 'fastest' })).toMatchObject({ code: 'unknown_policy' })
    expect(() => check({ prefillPolicy: 'bucket', decodePolicy: 'random' })).toThrow('nothing was thrown')
  })

  test('are replaced by least_load in the main policy or a label', () => {
    const warn = vi.fn()
    open({ defaultPolicy: 'passthrough', log: { warn } as unknown as ThreadBalanceOptions['log'] })
    registerMissing('passthrough', { name: 'passthrough', needsBody: false, pick: () => 0 })
    registerMissing('bucket', { name: 'bucket', needsBody: false, pick: () => 0 })
    const labelled = { ...worker(1, 'decode'), labels: { policy: 'bucket' } }
    fleet.register(worker(0, 'prefill'), labelled, worker(2, 'regular'))
    expect(fleet.balance.pick(ctx, 'm').policy).toBe('passthrough')
    expect(fleet.balance.pick(ctx, 'm', { leg: 'prefill' }).policy).toBe('least_load')
    expect(fleet.balance.pick(ctx, 'm', { leg: 'decode' }).policy).toBe('least_load')
    const lines = warn.mock.calls.map(([fields]) => fields).filter((fields) => 'leg' in fields)
    expect(lines).toEqual([{ model: 'm', leg: 'decode', policy: 'bucket', used: 'least_load' }])
  })

  function registerMissing(
    name: string,
    policy: { name: string; needsBody: boolean; pick: () => number },
  ): void {
    if (!fleet.balance.registry.names().includes(name)) fleet.balance.registry.register(name, () => policy)
  }
})
