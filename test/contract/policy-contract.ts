/** What every load balancing policy must hold to; each built-in one and each plugin's runs it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CandidateView, PickRequest, PolicyFactory } from '../../kernel/contracts/policy.ts'
import { workerEntry } from '../support/worker-entry.ts'

export interface PolicyPromises {
  /** Between workers equal in all else the cheapest is always taken. */
  readonly prefersLowerCost: boolean
}

interface Candidate {
  readonly inFlight: number
  readonly cost: number
}

/** A view as balancing makes it; reading outside it fails the test. */
export function candidateView(candidates: readonly Candidate[]): CandidateView {
  const workers = candidates.map(({ cost }, slot) => workerEntry({ slot, cost, models: ['m'] }))
  const requireInside = (index: number) => {
    if (!(Number.isInteger(index) && index >= 0 && index < candidates.length)) {
      throw new RangeError(`the policy read position ${index} of ${candidates.length}`)
    }
  }
  return {
    length: candidates.length,
    worker(index) {
      requireInside(index)
      return workers[index]
    },
    inFlight(index) {
      requireInside(index)
      return candidates[index].inFlight
    },
  }
}

const withBody: PickRequest = {
  model: 'm',
  body: Buffer.from('{"model":"m","messages":[{"role":"user","content":"hello"}]}'),
  header: () => undefined,
}

const withoutBody: PickRequest = {
  model: 'm',
  get body(): Buffer | null {
    throw new Error('the policy read the body without declaring needsBody')
  },
  header: () => undefined,
}

const candidateArbitrary = fc.record({
  inFlight: fc.integer({ min: 0, max: 100 }),
  cost: fc.integer({ min: 0, max: 5 }),
})
const viewsArbitrary = fc.array(fc.array(candidateArbitrary, { minLength: 1, maxLength: 40 }), {
  minLength: 1,
  maxLength: 30,
})

export function policyContract(name: string, makePolicy: PolicyFactory, promises: PolicyPromises): void {
  describe(`policy ${name}`, () => {
    const requestFor = (needsBody: boolean) => (needsBody ? withBody : withoutBody)

    test('carries its wire name', () => {
      expect(makePolicy().name).toBe(name)
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/)
    })

    test('each model gets an instance of its own', () => {
      expect(makePolicy()).not.toBe(makePolicy())
    })

    test('answers at once with a position inside the view, whatever was picked before, and reads the body only if declared', () => {
      fc.assert(
        fc.property(viewsArbitrary, (views) => {
          const policy = makePolicy()
          for (const candidates of views) {
            const index = policy.pick(candidateView(candidates), requestFor(policy.needsBody))
            expect(Number.isInteger(index)).toBe(true)
            expect(index).toBeGreaterThanOrEqual(0)
            expect(index).toBeLessThan(candidates.length)
          }
        }),
      )
    })

    test('takes the only candidate', () => {
      const policy = makePolicy()
      for (let i = 0; i < 20; i++) {
        expect(policy.pick(candidateView([{ inFlight: i, cost: 1 }]), requestFor(policy.needsBody))).toBe(0)
      }
    })

    test('goes on after workers left, known to it or not', () => {
      const policy = makePolicy()
      const view = candidateView([
        { inFlight: 0, cost: 1 },
        { inFlight: 0, cost: 1 },
      ])
      policy.pick(view, requestFor(policy.needsBody))
      policy.onWorkerRemoved?.(0)
      policy.onWorkerRemoved?.(4_000)
      expect([0, 1]).toContain(policy.pick(view, requestFor(policy.needsBody)))
    })

    if (promises.prefersLowerCost) {
      test('routing check 28: between two workers equal in load the cheaper one wins, in either order', () => {
        fc.assert(
          fc.property(fc.integer({ min: 0, max: 9 }), fc.boolean(), (inFlight, cheapFirst) => {
            const policy = makePolicy()
            const cheap = { inFlight, cost: 1 }
            const dear = { inFlight, cost: 2 }
            const view = candidateView(cheapFirst ? [cheap, dear] : [dear, cheap])
            for (let i = 0; i < 10; i++) {
              expect(policy.pick(view, requestFor(policy.needsBody))).toBe(cheapFirst ? 0 : 1)
            }
          }),
        )
      })
    }
  })
}
