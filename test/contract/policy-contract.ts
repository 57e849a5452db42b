/** Contract of load balancing policies; runs over every built-in policy and over a third-party one. */
import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PickRequest, Policy, PolicyParts } from '../../kernel/contracts/policy.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import {
  chatRequest,
  engineLoad,
  type FleetWorker,
  fleetWorker,
  pickRequest,
  type RequestParts,
  viewOf,
} from '../support/policy-fleet.ts'

export interface PolicyPromises {
  /** Of workers equal in all else, the cheapest is picked. */
  readonly prefersLowerCost: boolean
  /** Affinity of a session or prompt holds on all threads. */
  readonly agreesOverThreads: boolean
  /** When it may pick no worker although there are candidates; null if it never does. */
  readonly refuses: ((request: PickRequest) => boolean) | null
}

/** Creates an instance; the contract overrides some parts. */
export type MakePolicy = (parts?: Partial<PolicyParts>) => Policy

const loadArbitrary = fc.option(
  fc.record({
    queuedTokens: fc.integer({ min: -1, max: 100_000 }),
    usedTokens: fc.integer({ min: -1, max: 100_000 }),
    kvUsage: fc.constantFrom(-1, 0, 0.2, 0.9, 1, 1.3),
    tokensPerSecond: fc.constantFrom(0, 1, 2_000),
    atMs: fc.integer({ min: 0, max: 2_000_000_000_000 }),
  }),
)

const fleetArbitrary = fc
  .uniqueArray(
    fc.record({
      slot: fc.integer({ min: 0, max: 200 }),
      inFlight: fc.integer({ min: 0, max: 200 }),
      cost: fc.integer({ min: 0, max: 5 }),
      isAvailable: fc.boolean(),
      load: loadArbitrary,
      id: fc.constantFrom('a', 'b', 'c'),
    }),
    { minLength: 1, maxLength: 30, selector: ({ slot }) => slot },
  )
  .map((workers) =>
    workers.map(({ slot, id, ...given }) => fleetWorker(slot, { ...given, id: `${slot}-${id}` })),
  )
  .filter((fleet) => fleet.some(({ isAvailable }) => isAvailable))

const bodyArbitrary = fc.oneof(
  fc.string().map((content) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })),
  fc.integer({ min: 0, max: 70_000 }).map((length) => JSON.stringify({ prompt: 'ab"c'.repeat(length / 4) })),
  fc.constantFrom('{}', '', '[', '{"messages":', '{"input":[1,2', '{"text":"\\', 'null'),
)

const requestArbitrary: fc.Arbitrary<RequestParts> = fc.record({
  model: fc.constantFrom('m', 'n', 'unknown'),
  body: bodyArbitrary,
  tokenIds: fc.option(fc.uint32Array({ maxLength: 300 }).map((ids) => new Uint32Array(ids))),
  headers: fc.dictionary(
    fc.constantFrom(
      'x-weir-routing-key',
      'x-smg-routing-key',
      'x-weir-target-worker',
      'authorization',
      'cookie',
    ),
    fc.oneof(fc.string(), fc.constantFrom('0', '1', '29', '-1', '1e3', '999999999999')),
  ),
})

/** The request as the picker passes it: without the body unless the policy declares `needsBody`. */
function shownTo(policy: Policy, given: RequestParts): PickRequest {
  const request = pickRequest(given)
  if (policy.needsBody) return request
  return {
    ...request,
    get body(): Buffer | null {
      throw new Error('the policy read the body without declaring needsBody')
    },
  }
}

export function policyContract(name: string, makePolicy: MakePolicy, promises: PolicyPromises): void {
  const { prefersLowerCost, refuses } = promises

  function expectAnswer(policy: Policy, fleet: readonly FleetWorker[], request: PickRequest): void {
    const view = viewOf(fleet)
    const index = policy.pick(view, request)
    expect(Number.isInteger(index)).toBe(true)
    expect(index).toBeGreaterThanOrEqual(refuses?.(request) === true ? -1 : 0)
    expect(index).toBeLessThan(view.length)
  }

  describe(`policy ${name}`, () => {
    test('has its wire name', () => {
      expect(makePolicy().name).toBe(name)
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/)
    })

    test('each model has its own instance', () => {
      expect(makePolicy()).not.toBe(makePolicy())
    })

    test('returns a position inside the view synchronously, for every request and history', () => {
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fleetArbitrary, requestArbitrary), { minLength: 1, maxLength: 20 }),
          (picks) => {
            const policy = makePolicy()
            for (const [fleet, given] of picks) expectAnswer(policy, fleet, shownTo(policy, given))
            policy.close?.()
          },
        ),
        { numRuns: 50 },
      )
    })

    test('picks the only candidate, also when it is one of several workers', () => {
      const policy = makePolicy()
      const alone = [fleetWorker(0)]
      const left = [
        fleetWorker(3, { isAvailable: false }),
        fleetWorker(5),
        fleetWorker(9, { isAvailable: false }),
      ]
      for (let i = 0; i < 20; i++) {
        const request = shownTo(policy, { body: '{"prompt":"abc"}' })
        expect(policy.pick(viewOf(alone), request)).toBe(0)
        expect(policy.pick(viewOf(left), request)).toBe(0)
      }
      policy.close?.()
    })

    test('picks after workers were removed, known or unknown, and after a slot was reused', () => {
      const policy = makePolicy()
      const request = shownTo(policy, { body: '{"prompt":"abc"}', headers: { 'x-weir-routing-key': 'k' } })
      expectAnswer(policy, [fleetWorker(0), fleetWorker(1)], request)
      policy.onWorkerRemoved?.(0)
      policy.onWorkerRemoved?.(4_000)
      expectAnswer(policy, [fleetWorker(1), fleetWorker(2)], request)
      expectAnswer(policy, [fleetWorker(0, { id: 'another' }), fleetWorker(1)], request)
      policy.close?.()
    })

    test('picks when engine reports appear and disappear', () => {
      const policy = makePolicy()
      const fleet = [fleetWorker(0, { inFlight: 2 }), fleetWorker(1, { inFlight: 1 }), fleetWorker(2)]
      const request = shownTo(policy, { body: '{"prompt":"abc"}' })
      expectAnswer(policy, fleet, request)
      fleet[1].load = engineLoad({ kvUsage: 0.5 })
      expectAnswer(policy, fleet, request)
      fleet[0].load = engineLoad({ kvUsage: 0.1, queuedTokens: 7 })
      fleet[2].load = engineLoad({})
      expectAnswer(policy, fleet, request)
      for (const worker of fleet) worker.load = null
      expectAnswer(policy, fleet, request)
      policy.close?.()
    })

    test('gives a short explanation of its pick, if any', () => {
      const policy = makePolicy({ metrics: new ThreadMetrics() })
      policy.pick(viewOf([fleetWorker(0), fleetWorker(1)]), shownTo(policy, { body: '{"prompt":"abc"}' }))
      const words = policy.explain?.()
      if (words !== undefined) expect(words).toMatch(/^.{3,80}$/)
      policy.close?.()
    })

    if (prefersLowerCost) {
      test('of two workers equal in load the cheaper one is picked, in either order', () => {
        fc.assert(
          fc.property(fc.integer({ min: 0, max: 9 }), fc.boolean(), (inFlight, cheapFirst) => {
            const policy = makePolicy()
            const cheap = fleetWorker(0, { inFlight, cost: 1 })
            const dear = fleetWorker(1, { inFlight, cost: 2 })
            const view = viewOf(cheapFirst ? [cheap, dear] : [dear, cheap])
            for (let i = 0; i < 10; i++) {
              // A new prompt each time, so that cache affinity plays no part.
              const request = chatRequest(`${i}`.repeat(200))
              expect(policy.pick(view, request)).toBe(cheapFirst ? 0 : 1)
            }
            policy.close?.()
          }),
        )
      })
    }
  })
}

const THREADS = 3
const SESSIONS = 200
/** Starting threads is slow on a loaded machine. */
const THREADS_TIMEOUT_MS = 30_000

/**
 * Runs the policy on real threads over memory that the control thread did not create, so that instances allocate it at their first pick.
 *
 * @param file URL of the plugin that registers the policy
 */
export function policyThreadsContract(name: string, file: string, promises: PolicyPromises): void {
  const limits = { timeout: THREADS_TIMEOUT_MS }

  test(`policy ${name} on real threads: picks, exits, and agrees if it declares so`, limits, async () => {
    const memory = new SharedMemory()
    const gate = new SharedArrayBuffer(8)
    const threads = Array.from({ length: THREADS }, () => {
      const { port1, port2: port } = new MessageChannel()
      memory.connect(port1)
      const work = { file, name, blocks: memory.blocks, gate, threads: THREADS, sessions: SESSIONS }
      return new Worker(new URL('../fixtures/policy-thread.ts', import.meta.url), {
        workerData: { ...work, port },
        transferList: [port],
        execArgv: ['--conditions=weir-source', '--no-warnings'],
      })
    })
    const answers = await Promise.all(
      threads.map(async (thread) => {
        // A timer left by the policy would keep its thread alive.
        const [[slots], [code]] = await Promise.all([once(thread, 'message'), once(thread, 'exit')])
        expect(code).toBe(0)
        return slots as number[]
      }),
    )
    const [first] = answers
    expect(first).toHaveLength(SESSIONS)
    for (const slots of answers) for (const slot of slots) expect(slot).toBeOneOf([0, 1, 2, 3, 4, 5, 6, 7])
    if (!promises.agreesOverThreads) return
    for (const slots of answers) expect(slots).toEqual(first)
    expect(new Set(first).size).toBeGreaterThan(3)
  })
}
