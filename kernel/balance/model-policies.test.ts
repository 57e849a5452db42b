/** The policy of a model from its first worker to its last, and the life of the instance. */
import { beforeEach, describe, expect, test } from 'vitest'
import { pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { PolicyParts } from '../contracts/policy.ts'

const ctx = pickContext()
let fleet: TestBalance
let made: string[]
let closed: string[]

beforeEach(() => {
  made = []
  closed = []
  fleet = new TestBalance({ defaultPolicy: 'noting' })
  for (const name of ['noting', 'other'])
    fleet.balance.registry.register(name, (parts) => notingPolicy(name, parts))
})

function notingPolicy(name: string, { model, leg }: PolicyParts) {
  const instance = `${name} ${model} ${leg}`
  made.push(instance)
  return { name, needsBody: false, pick: () => 0, close: () => void closed.push(instance) }
}

function worker(slot: number, policy?: string, revision = 1) {
  const labels: Record<string, string> = policy === undefined ? {} : { policy }
  return workerEntry({ slot, models: ['m'], labels, revision })
}

function policyOf(model = 'm'): string {
  return fleet.balance.pick(ctx, model).policy
}

describe('the label of the first worker', () => {
  test('decides even after that worker was removed, until the last one is removed', () => {
    fleet.register(worker(0, 'O_THER'), worker(1), worker(2, 'random'))
    expect(policyOf()).toBe('other')
    fleet.register(worker(1), worker(2, 'random'))
    expect(policyOf()).toBe('other')
    fleet.register(worker(2, 'random'))
    expect(policyOf()).toBe('other')
    fleet.register()
    fleet.register(worker(2, 'random'))
    expect(policyOf()).toBe('random')
  })

  test('decides before the first pick; without a label, later ones do not decide', () => {
    fleet.register(worker(0))
    fleet.register(worker(0), worker(1, 'other'))
    fleet.register(worker(1, 'other'))
    expect(policyOf()).toBe('noting')
  })

  test('changes the policy when it changes', () => {
    fleet.register(worker(0), worker(1))
    expect(policyOf()).toBe('noting')
    fleet.register(worker(0, 'other', 2), worker(1))
    expect(policyOf()).toBe('other')
    expect(closed).toEqual(['noting m whole'])
    fleet.register(worker(1, 'random'))
    expect(policyOf()).toBe('other')
  })

  test('of a wildcard worker decides for unlisted models, but not for requests without a model', () => {
    fleet.register(workerEntry({ slot: 0, labels: { policy: 'other' } }))
    expect(policyOf('anything')).toBe('other')
    expect(policyOf('anything else')).toBe('other')
    expect(policyOf('unknown')).toBe('noting')
    expect(made).toEqual(['other  whole', 'noting unknown whole'])
  })
})

describe('an instance', () => {
  test('is created at the first pick of each model and leg, with its name', () => {
    fleet.register(worker(0), workerEntry({ slot: 1, models: ['m'], workerType: 'decode' }))
    expect(made).toEqual([])
    policyOf()
    policyOf()
    fleet.balance.pick(ctx, 'm', { leg: 'decode' })
    expect(made).toEqual(['noting m whole', 'noting m decode'])
  })

  test('is closed when the last worker is removed, and at shutdown', () => {
    const decode = workerEntry({ slot: 1, models: ['m'], workerType: 'decode' })
    fleet.register(worker(0), decode)
    policyOf()
    fleet.balance.pick(ctx, 'm', { leg: 'decode' })
    fleet.register(decode)
    expect(closed).toEqual(['noting m whole'])
    fleet.balance.close()
    fleet.balance.close()
    expect(closed).toEqual(['noting m whole', 'noting m decode'])
  })
})
