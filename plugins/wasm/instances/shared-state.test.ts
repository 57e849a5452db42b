import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { sharedClockMs } from '../threads/guest-task.ts'
import { POOL_WAIT_MS } from './shared-lock.ts'
import { MAX_VALUE_BYTES, NOT_COUNTED, SharedState, stateKey } from './shared-state.ts'

const MINUTE = 60_000
const key = (name: string) => stateKey('module', 'tenant', name)
const bytes = (text: string) => Uint8Array.from(Buffer.from(text))
const open = (size = 262_144) => new SharedState(new SharedArrayBuffer(size), 1)
const textOf = (value: Uint8Array | null) => (value === null ? null : Buffer.from(value).toString())

afterEach(() => vi.useRealTimers())

test('the state behaves like a map for any sequence of writes', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const step = fc.oneof(
    fc.record({ do: fc.constant('set'), name, size: fc.nat(3_000) }),
    fc.record({ do: fc.constant('delete'), name, size: fc.constant(0) }),
    fc.record({ do: fc.constant('get'), name, size: fc.constant(0) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const state = open()
      const model = new Map<string, string>()
      for (const [index, one] of steps.entries()) {
        if (one.do === 'set') {
          const value = `${index}:`.padEnd(one.size, String.fromCharCode(97 + (index % 26)))
          expect(state.set(key(one.name), bytes(value), MINUTE)).toBe(true)
          model.set(one.name, value)
        } else if (one.do === 'delete') expect(state.delete(key(one.name))).toBe(model.delete(one.name))
        for (const each of ['a', 'b', 'c', 'd', 'e'])
          expect(textOf(state.get(key(each)))).toBe(model.get(each) ?? null)
      }
    }),
    { numRuns: 40 },
  )
})

test('a full table evicts the oldest entries, stays consistent and never returns a wrong value', () => {
  const state = open(65_536)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2_000), fc.nat(1_500)), { maxLength: 300 }), (writes) => {
      for (const [number, size] of writes) {
        const value = `${number}:`.padEnd(size, 'x')
        expect(state.set(key(`k${number}`), bytes(value), MINUTE)).toBe(true)
        expect(textOf(state.get(key(`k${number}`)))).toBe(value)
      }
      for (let number = 0; number <= 2_000; number++) {
        const found = textOf(state.get(key(`k${number}`)))
        if (found !== null) expect(found.startsWith(`${number}:`)).toBe(true)
      }
    }),
    { numRuns: 10 },
  )
})

test('a value above the limit is rejected, one at the limit is kept', () => {
  const state = open()
  expect(state.set(key('a'), new Uint8Array(MAX_VALUE_BYTES + 1), MINUTE)).toBe(false)
  expect(state.set(key('a'), new Uint8Array(MAX_VALUE_BYTES).fill(7), MINUTE)).toBe(true)
  expect(state.get(key('a'))).toEqual(new Uint8Array(MAX_VALUE_BYTES).fill(7))
  expect(open(65_536).set(key('a'), new Uint8Array(MAX_VALUE_BYTES), MINUTE)).toBe(false)
})

describe('time to live', () => {
  test('starts when a value is set, and at the first increment of a counter', () => {
    vi.useFakeTimers({ now: 1_000 })
    const state = open()
    state.set(key('v'), bytes('x'), 100)
    expect(state.increment(key('n'), 1n, 100)).toBe(1n)
    vi.setSystemTime(1_099)
    expect(textOf(state.get(key('v')))).toBe('x')
    expect(state.increment(key('n'), 2n, 100)).toBe(3n)
    vi.setSystemTime(1_100)
    expect(state.get(key('v'))).toBeNull()
    expect(state.increment(key('n'), 5n, 100)).toBe(5n)
  })

  test('of 0 is the longest allowed', () => {
    vi.useFakeTimers({ now: 0 })
    const state = open()
    state.set(key('v'), bytes('x'), 0)
    vi.setSystemTime(86_399_999)
    expect(state.get(key('v'))).not.toBeNull()
    vi.setSystemTime(86_400_000)
    expect(state.get(key('v'))).toBeNull()
  })
})

test('a value that is not a counter is not incremented; counters wrap like 64-bit integers', () => {
  const state = open()
  state.set(key('text'), bytes('abc'), MINUTE)
  expect(state.increment(key('text'), 1n, MINUTE)).toBe(NOT_COUNTED)
  expect(state.increment(key('n'), 2n ** 63n - 1n, MINUTE)).toBe(2n ** 63n - 1n)
  expect(state.increment(key('n'), 1n, MINUTE)).toBe(-(2n ** 63n))
})

test('a lock held by a dead thread is released and the content cleared, without waiting', () => {
  const memory = new SharedArrayBuffer(65_536)
  const [alive, other] = [new SharedState(memory, 1), new SharedState(memory, 3)]
  alive.set(key('a'), bytes('x'), MINUTE)
  // The state after a thread was terminated while holding the lock.
  Atomics.store(new Int32Array(memory), 0, 2 + 1)
  expect(alive.get(key('a'))).toBeNull()
  expect(alive.increment(key('n'), 1n, MINUTE)).toBe(NOT_COUNTED)
  other.releaseDead(7)
  expect(alive.set(key('a'), bytes('y'), MINUTE)).toBe(false)
  other.releaseDead(2)
  expect(alive.get(key('a'))).toBeNull()
  expect(alive.set(key('a'), bytes('y'), MINUTE)).toBe(true)
  expect(textOf(other.get(key('a')))).toBe('y')
})

test('a pool thread waits for a lock holder that is not scheduled', async () => {
  const memory = new SharedArrayBuffer(65_536)
  const patient = new SharedState(memory, 1, POOL_WAIT_MS)
  const words = new Int32Array(memory)
  Atomics.store(words, 0, 9)
  Atomics.store(words, 1, sharedClockMs())
  const source = `
    const words = new Int32Array(require('node:worker_threads').workerData)
    Atomics.wait(words, 2, 0, 120)
    Atomics.store(words, 0, 0)
    Atomics.notify(words, 0)`
  const holder = new Worker(source, { eval: true, workerData: memory })
  await once(holder, 'online')
  expect(patient.increment(key('n'), 1n, MINUTE)).toBe(1n)
  await holder.terminate()
})

test('a lock that is not released expires', () => {
  const memory = new SharedArrayBuffer(65_536)
  const state = new SharedState(memory, 1)
  const words = new Int32Array(memory)
  Atomics.store(words, 0, 9)
  Atomics.store(words, 1, sharedClockMs() - 4_000)
  expect([state.set(key('a'), bytes('x'), MINUTE), Atomics.load(words, 0)]).toEqual([false, 9])
  Atomics.store(words, 1, sharedClockMs() - 6_000)
  state.set(key('a'), bytes('x'), MINUTE)
  expect(state.set(key('a'), bytes('x'), MINUTE)).toBe(true)
})

test('different modules, tenants and keys have different entries', () => {
  const part = fc.string({ maxLength: 6 })
  const triple = fc.tuple(part, fc.option(part), part)
  fc.assert(
    fc.property(triple, triple, (one, two) => {
      const isSame = JSON.stringify(one) === JSON.stringify(two)
      expect(Buffer.compare(stateKey(...one), stateKey(...two)) === 0).toBe(isSame)
    }),
  )
  expect(Buffer.compare(stateKey('m', null, 'k'), stateKey('m', '', 'k'))).not.toBe(0)
})
