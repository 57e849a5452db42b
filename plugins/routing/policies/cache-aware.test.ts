import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SharedMemory } from '../../../kernel/threads/shared-memory.ts'
import {
  chatRequest,
  engineLoad,
  fleetOf,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
  seededRandom,
} from '../../../test/support/policy-fleet.ts'

const PREFIX = 'The system prompt that many sessions have in common. '.repeat(40)
const branch = (thread: PolicyThread, name: string) =>
  thread.metric('weir_cache_aware_policy_branch_total', name)

/** A prompt of exactly that many bytes, as the raw value of `prompt`, quotes included. */
const promptOf = (start: string, bytes: number) =>
  pickRequest({ body: `{"prompt":"${start}${'.'.repeat(bytes - 2 - start.length)}"}` })

test('the same long prompt goes to the same worker, an unrelated one to the least loaded', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('cache_aware')
  const fleet = fleetOf(4)
  const home = pickSlot(policy, fleet, chatRequest(PREFIX))
  fleet[home].inFlight = 3
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(home)
  expect(policy.explain?.()).toBe(`prefix 1.00 on slot ${home}`)
  for (const worker of fleet) worker.inFlight += 1
  fleet[(home + 2) % 4].inFlight = 0
  expect(pickSlot(policy, fleet, chatRequest('x'.repeat(2_000)))).toBe((home + 2) % 4)
  expect([branch(thread, 'hit'), branch(thread, 'miss')]).toEqual([1, 2])
  expect(thread.metric('weir_cache_aware_policy_matched_bytes_total')).toBeGreaterThan(2_000)
  policy.close?.()
})

test('the next turn of a conversation goes to the worker of the previous turns', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(8)
  const random = seededRandom(5)
  const sessions = Array.from({ length: 20 }, (_, i) => ({
    messages: [{ role: 'user', content: `${i} `.repeat(300) }],
    home: -1,
  }))
  for (let turn = 0; turn < 6; turn++) {
    for (const session of sessions) {
      for (const worker of fleet) worker.inFlight = Math.floor(random() * 3)
      const slot = pickSlot(
        policy,
        fleet,
        pickRequest({ body: JSON.stringify({ model: 'm', messages: session.messages }) }),
      )
      if (turn === 0) session.home = slot
      expect(slot).toBe(session.home)
      session.messages.push(
        { role: 'assistant', content: `answer ${turn} `.repeat(20) },
        { role: 'user', content: 'go on' },
      )
    }
  }
  policy.close?.()
})

test('a match exactly at the threshold is no hit, one byte more is', () => {
  const policy = new PolicyThread({ cacheAware: { cacheThreshold: 0.5 } }).policy('cache_aware')
  const fleet = fleetOf(2)
  const start = 's'.repeat(90)
  const home = pickSlot(policy, fleet, promptOf(start, 128))
  fleet[home].inFlight = 1
  // 64 bytes of the start match: half of 128.
  expect(pickSlot(policy, fleet, promptOf(start.slice(0, 70), 127))).toBe(home)
  const other = new PolicyThread({ cacheAware: { cacheThreshold: 0.5 } }).policy('cache_aware')
  pickSlot(other, fleet, promptOf(start, 128))
  fleet[home].inFlight = 0
  fleet[1 - home].inFlight = 0
  const otherHome = pickSlot(other, fleet, promptOf(start, 128))
  fleet[otherHome].inFlight = 1
  expect(pickSlot(other, fleet, promptOf(start.slice(0, 70), 128))).toBe(1 - otherHome)
})

test('65 against 0 in flight overrides a full match, 64 against 0 does not', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('cache_aware')
  const fleet = fleetOf(2)
  const home = pickSlot(policy, fleet, chatRequest(PREFIX))
  fleet[home].inFlight = 64
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(home)
  fleet[home].inFlight = 65
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(1 - home)
  expect(branch(thread, 'imbalanced')).toBe(1)
  // Both workers hold the prompt now, and the less loaded one is picked.
  fleet[home].inFlight = 30
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(1 - home)
})

test('a busy holder of a partial match is skipped if its queue outweighs the match, a holder of the full prompt is not', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('cache_aware')
  const fleet = fleetOf(3)
  const start = 's'.repeat(3_840)
  const home = pickSlot(policy, fleet, promptOf(start, 4_000))
  // 960 tokens equal 15 requests of 64.
  fleet[home].inFlight = 15
  expect(pickSlot(policy, fleet, promptOf(`${start}a`, 4_100))).toBe(home)
  fleet[home].inFlight = 16
  expect(pickSlot(policy, fleet, promptOf(start, 4_000))).toBe(home)
  const other = pickSlot(policy, fleet, promptOf(`${start}b`, 4_100))
  expect(other).not.toBe(home)
  expect(branch(thread, 'spill')).toBe(1)
  // Two workers hold it now, and the less loaded one is picked.
  expect(pickSlot(policy, fleet, promptOf(`${start}c`, 4_100))).toBe(other)
  expect(branch(thread, 'hit')).toBe(3)
})

test('with queuedRequestTokens 0 a holder of a partial match is skipped only for uneven load', () => {
  const policy = new PolicyThread({ cacheAware: { queuedRequestTokens: 0 } }).policy('cache_aware')
  const fleet = fleetOf(3)
  const start = 's'.repeat(1_920)
  const home = pickSlot(policy, fleet, promptOf(start, 2_000))
  fleet[home].inFlight = 64
  expect(pickSlot(policy, fleet, promptOf(`${start}a`, 2_100))).toBe(home)
})

test('100 against 67 in flight is a large spread but not one and a half times as much', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(2)
  const home = pickSlot(policy, fleet, chatRequest(PREFIX))
  fleet[home].inFlight = 200
  fleet[1 - home].inFlight = 134
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(home)
  fleet[1 - home].inFlight = 133
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(1 - home)
})

describe('KV memory in use', () => {
  const settings = { cacheAware: { balanceTokenUsageThreshold: 0.3, overloadTokenUsageThreshold: 0.9 } }

  test('overrides the match if its spread is too large or one engine is too full', () => {
    const policy = new PolicyThread(settings).policy('cache_aware')
    const fleet = fleetOf(2)
    const home = pickSlot(policy, fleet, chatRequest(PREFIX))
    fleet[home].inFlight = 1
    const pickWith = (own: number, other: number) => {
      fleet[home].load = engineLoad({ kvUsage: own })
      fleet[1 - home].load = engineLoad({ kvUsage: other })
      // The override stores the prompt on the other worker too.
      return new Set([pickSlot(policy, fleet, chatRequest(PREFIX))])
    }
    expect(pickWith(0.5, 0.3)).toEqual(new Set([home]))
    expect(pickWith(0.5, 0.1)).toEqual(new Set([1 - home]))
  })

  test('is ignored unless a threshold is below 1 and engines report it', () => {
    for (const thread of [new PolicyThread(), new PolicyThread(settings)]) {
      const policy = thread.policy('cache_aware')
      const fleet = fleetOf(2)
      const home = pickSlot(policy, fleet, chatRequest(PREFIX))
      fleet[home].inFlight = 1
      fleet[home].load = engineLoad({
        kvUsage: thread.state.config.cacheAware.balanceTokenUsageThreshold < 1 ? -1 : 0.99,
      })
      fleet[1 - home].load = engineLoad({ kvUsage: 0 })
      expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(home)
    }
  })
})

test('while the holder is unavailable another worker serves, then the holder gets its prompts again', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(3)
  const home = pickSlot(policy, fleet, chatRequest(PREFIX))
  fleet[home].isAvailable = false
  const refuge = pickSlot(policy, fleet, chatRequest(PREFIX))
  expect(refuge).not.toBe(home)
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(refuge)
  fleet[home].isAvailable = true
  expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(home)
})

test('after the holder was removed, requests succeed, and a new worker in its slot inherits nothing', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const before = [fleetWorker(0), fleetWorker(1)]
  const home = pickSlot(policy, before, chatRequest(PREFIX))
  policy.onWorkerRemoved?.(home)
  const stays = before.filter(({ entry }) => entry.slot !== home)
  const newcomer = fleetWorker(home, { id: 'another', inFlight: 1 })
  expect(pickSlot(policy, [newcomer, ...stays], chatRequest(PREFIX))).toBe(1 - home)
  // The remaining worker holds it now.
  stays[0].inFlight = 2
  expect(pickSlot(policy, [newcomer, ...stays], chatRequest(PREFIX))).toBe(1 - home)
})

describe('with sweeps', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_800_000_000_000 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('100,000 characters of unique prompts leave at most 1000 for each worker after a sweep', () => {
    const thread = new PolicyThread({ cacheAware: { maxTreeSize: 1_000 } })
    const policy = thread.policy('cache_aware')
    const fleet = fleetOf(3)
    for (let i = 0; i < 200; i++) pickSlot(policy, fleet, promptOf(`${i} `.repeat(20), 500))
    expect(thread.state.counters.cachedBytes(0)).toBeGreaterThan(30_000)
    vi.advanceTimersByTime(121_000)
    for (const slot of [0, 1, 2]) {
      expect(thread.state.counters.cachedBytes(slot)).toBeLessThanOrEqual(1_000)
      expect(thread.state.counters.cachedBytes(slot)).toBeGreaterThan(0)
    }
    policy.close?.()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('recently used prompts are kept', () => {
    const thread = new PolicyThread({ cacheAware: { maxTreeSize: 1_000 } })
    const policy = thread.policy('cache_aware')
    const fleet = fleetOf(2)
    const prompts = Array.from({ length: 50 }, (_, i) => promptOf(`${i} `.repeat(20), 480))
    for (const prompt of prompts) pickSlot(policy, fleet, prompt)
    const favourite = pickSlot(policy, fleet, prompts[3])
    vi.advanceTimersByTime(121_000)
    fleet[favourite].inFlight = 1
    expect(pickSlot(policy, fleet, prompts[3])).toBe(favourite)
    expect(branch(thread, 'hit')).toBe(2)
    policy.close?.()
  })

  test('one thread sweeps for all', () => {
    const memory = new SharedMemory()
    const threads = Array.from(
      { length: 4 },
      () => new PolicyThread({ cacheAware: { maxTreeSize: 1_000 } }, memory),
    )
    const policies = threads.map((thread) => thread.policy('cache_aware'))
    const fleet = fleetOf(2)
    for (let i = 0; i < 200; i++) pickSlot(policies[i % 4], fleet, promptOf(`${i} `.repeat(20), 500))
    vi.advanceTimersByTime(121_000)
    expect(threads[2].state.counters.cachedBytes(0)).toBeLessThanOrEqual(1_000)
    for (const policy of policies) policy.close?.()
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('models do not share affinity; aliases share it with their canonical id', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(2)
  const home = pickSlot(policy, fleet, chatRequest(PREFIX))
  fleet[home].inFlight = 1
  expect(pickSlot(policy, fleet, chatRequest(PREFIX, { model: 'other' }))).toBe(1 - home)
  // The body has the alias, the pick the canonical model.
  const body = JSON.stringify({ model: 'alias', messages: [{ role: 'user', content: PREFIX }] })
  expect(pickSlot(policy, fleet, pickRequest({ model: 'm', body }))).toBe(home)
})

test('legs of a pair do not share affinity', () => {
  const thread = new PolicyThread()
  const fleet = fleetOf(2)
  const prefill = thread.policy('cache_aware', { leg: 'prefill' })
  const decode = thread.policy('cache_aware', { leg: 'decode' })
  const home = pickSlot(prefill, fleet, chatRequest(PREFIX))
  fleet[home].inFlight = 1
  expect(pickSlot(decode, fleet, chatRequest(PREFIX))).toBe(1 - home)
})

test('threads share their prefix table', () => {
  const memory = new SharedMemory()
  const [one, other] = [1, 2].map(() => new PolicyThread({}, memory).policy('cache_aware'))
  const fleet = fleetOf(16)
  for (let i = 0; i < 50; i++) {
    for (const worker of fleet) worker.inFlight = 0
    const request = chatRequest(`${i} ${PREFIX}`)
    const home = pickSlot(one, fleet, request)
    fleet[home].inFlight = 2
    expect(pickSlot(other, fleet, request)).toBe(home)
  }
})

test('of several holders the least loaded is picked, in any order', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(5)
  // Each of three gets the prompt while it is the only available one.
  for (const slot of [3, 1, 4]) {
    for (const worker of fleet) worker.isAvailable = worker.entry.slot === slot
    pickSlot(policy, fleet, chatRequest(PREFIX))
  }
  for (const worker of fleet) worker.isAvailable = true
  for (const least of [4, 3, 1]) {
    for (const worker of fleet) worker.inFlight = worker.entry.slot === least ? 5 : 6
    fleet[0].inFlight = 0
    expect(pickSlot(policy, fleet, chatRequest(PREFIX))).toBe(least)
  }
})

test('token ids match in full pages of 16, and not with text', () => {
  const policy = new PolicyThread().policy('cache_aware')
  const fleet = fleetOf(2)
  const ids = Uint32Array.from({ length: 100 }, (_, i) => i * 3)
  const home = pickSlot(policy, fleet, pickRequest({ tokenIds: ids }))
  fleet[home].inFlight = 1
  expect(pickSlot(policy, fleet, pickRequest({ tokenIds: ids.slice(0, 48) }))).toBe(home)
  // Less than one page.
  expect(pickSlot(policy, fleet, pickRequest({ tokenIds: ids.slice(0, 15) }))).toBe(1 - home)
})

test('a request without a prompt goes to the least loaded worker and is not stored', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('cache_aware')
  const fleet = fleetOf(3)
  const slots = Array.from({ length: 6 }, () =>
    pickSlot(policy, fleet, pickRequest({ body: '{"model":"m"}' })),
  )
  // By number of requests, so an idle fleet is used evenly.
  expect(slots).toEqual([0, 1, 2, 0, 1, 2])
  expect(branch(thread, 'no_prompt')).toBe(6)
  expect(thread.state.counters.cachedBytes(0)).toBe(0)
})

test('a small table that overflows repeatedly still works and stays within its size', () => {
  const thread = new PolicyThread({ cacheAware: { maxBytes: 65_536 } })
  const policy = thread.policy('cache_aware')
  const fleet = fleetOf(4)
  for (let i = 0; i < 3_000; i++) pickSlot(policy, fleet, promptOf(`${i} `.repeat(40), 2_000))
  expect(thread.state.prefixes.cells.byteLength).toBeLessThanOrEqual(65_536 + 64)
  const total = [0, 1, 2, 3].reduce((sum, slot) => sum + thread.state.counters.cachedBytes(slot), 0)
  // 2048 entries of at most 128 bytes here; the byte count includes evictions.
  expect(total).toBeGreaterThan(0)
  expect(total).toBeLessThanOrEqual(2_048 * 128)
  const home = pickSlot(policy, fleet, promptOf('the last one '.repeat(9), 2_000))
  for (const worker of fleet) worker.inFlight = worker.entry.slot === home ? 1 : 0
  expect(pickSlot(policy, fleet, promptOf('the last one '.repeat(9), 2_000))).toBe(home)
})

test('the byte count of a worker equals a recount of the table', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 60, max: 3_000 })), {
        maxLength: 200,
      }),
      (prompts) => {
        const thread = new PolicyThread({ cacheAware: { maxBytes: 65_536 } })
        const policy = thread.policy('cache_aware')
        const fleet = fleetOf(3)
        for (const [start, bytes] of prompts) pickSlot(policy, fleet, promptOf(`${start}`.repeat(20), bytes))
        const counted = [0, 0, 0]
        const table = thread.state.prefixes
        for (let entry = 0; entry < table.entryCount; entry++) {
          if (!table.isUsed(entry)) continue
          for (let place = 0; place < 4; place++) {
            const name = table.holderAt(entry, place)
            if (name !== 0) counted[name >>> 16] += table.span(entry)
          }
        }
        expect([0, 1, 2].map((slot) => thread.state.counters.cachedBytes(slot))).toEqual(counted)
        policy.close?.()
      },
    ),
    { numRuns: 30 },
  )
})
