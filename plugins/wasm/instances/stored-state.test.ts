/** Values of a module that the store or the mesh keeps, as control and guests see them. */
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { SHORT_WAIT_MS } from './shared-lock.ts'
import { counter, NOT_COUNTED, stateKey } from './shared-state.ts'
import { StoredState, type StoredValue } from './stored-state.ts'

const MINUTE = 60_000
const BYTES = 262_144
const key = (name: string) => stateKey('module', 'tenant', name)
const bytes = (text: string) => Uint8Array.from(Buffer.from(text))
const textOf = (value: Uint8Array | null) => (value === null ? null : Buffer.from(value).toString())
const open = (size = BYTES, tenantBytes = size) => {
  const memory = StoredState.create(size, tenantBytes)
  return { memory, state: new StoredState(memory, 1, SHORT_WAIT_MS) }
}
const stored = (value: Uint8Array): StoredValue => ({
  value,
  expiresAtMs: Date.now() + MINUTE,
  tenant: null,
})

afterEach(() => vi.useRealTimers())

/** A store as control writes it, between any calls of guests. */
class Place {
  readonly values = new Map<string, StoredValue>()

  /** Writes what guests changed, while they go on changing it. */
  write(state: StoredState, meanwhile: () => void = () => {}): void {
    const changes = state.changes(1_000)
    for (const { key, value, added, ...rest } of changes) {
      const id = Buffer.from(key).toString('hex')
      const before = this.values.get(id)
      const base = before === undefined || added === null ? null : Buffer.from(before.value)
      if (value === null) this.values.delete(id)
      else if (base === null) this.values.set(id, { ...rest, value: added === null ? value : counter(added) })
      else this.values.set(id, { ...rest, value: counter(base.readBigInt64LE() + (added ?? 0n)) })
    }
    meanwhile()
    for (const change of changes) {
      state.settle(change)
      state.apply(change.key, this.values.get(Buffer.from(change.key).toString('hex')) ?? null)
    }
  }

  fill(state: StoredState): void {
    for (const [id, value] of this.values) state.apply(Uint8Array.from(Buffer.from(id, 'hex')), value)
  }
}

type Step = { do: 'set' | 'delete' | 'add' | 'write' | 'restart'; name: string; size: number }
const NAMES = ['a', 'b', 'c', 'd']

test('any calls, writes at any time and restarts leave the values of a map', () => {
  const step: fc.Arbitrary<Step> = fc.record({
    do: fc.constantFrom('set', 'delete', 'add', 'write', 'restart'),
    name: fc.constantFrom(...NAMES),
    size: fc.nat(500),
  })
  const run = (steps: readonly Step[]) => {
    const place = new Place()
    const model = new Map<string, string>()
    let { state } = open()
    const call = ({ do: what, name, size }: Step) => {
      if (what === 'set') {
        expect(state.set(key(name), bytes('x'.repeat(size)), MINUTE, 'tenant')).toBe(true)
        model.set(name, 'x'.repeat(size))
      } else if (what === 'delete') expect(state.delete(key(name))).toBe(model.delete(name))
      else if (what === 'add') {
        const before = Buffer.from(model.get(name) ?? '\0'.repeat(8), 'latin1')
        const sum = state.increment(key(name), BigInt(size), MINUTE, 'tenant')
        if (before.length !== 8) return expect(sum).toBe(NOT_COUNTED)
        expect(sum).toBe(before.readBigInt64LE() + BigInt(size))
        model.set(name, Buffer.from(counter(sum)).toString('latin1'))
      }
    }
    for (const [index, one] of steps.entries()) {
      call(one)
      if (one.do === 'write') place.write(state, () => steps.slice(0, index).slice(-3).forEach(call))
      if (one.do === 'restart') {
        place.write(state)
        state = open().state
        place.fill(state)
      }
      for (const name of NAMES) {
        const value = state.get(key(name))
        expect(value === null ? undefined : Buffer.from(value).toString('latin1')).toBe(model.get(name))
      }
    }
    place.write(state)
    expect(state.changes(10)).toEqual([])
  }
  fc.assert(fc.property(fc.array(step, { maxLength: 50 }), run), { numRuns: 150 })
})

test('increments of two gateways add up, whatever they write first', () => {
  const place = new Place()
  const [one, other] = [open().state, open().state]
  for (let round = 0; round < 3; round++) {
    one.increment(key('n'), 2n, MINUTE, null)
    other.increment(key('n'), 5n, MINUTE, null)
    place.write(one, () => one.increment(key('n'), 1n, MINUTE, null))
    place.write(other)
    place.fill(one)
  }
  place.write(one)
  place.fill(other)
  expect([one.get(key('n')), other.get(key('n'))]).toEqual([counter(24n), counter(24n)])
})

test('a value of another gateway replaces one that was written, not one that guests have just changed', () => {
  const { state } = open()
  state.set(key('a'), bytes('own'), MINUTE, null)
  state.apply(key('a'), stored(bytes('other')))
  expect(textOf(state.get(key('a')))).toBe('own')
  for (const change of state.changes(10)) state.settle(change)
  state.apply(key('a'), stored(bytes('other')))
  expect(textOf(state.get(key('a')))).toBe('other')
  state.apply(key('a'), null)
  expect(state.get(key('a'))).toBeNull()
})

test('nothing is evicted: values beyond the memory of the module are rejected, and those before remain', () => {
  const { state } = open(65_536)
  const kept: string[] = []
  for (let number = 0; number < 200; number++)
    if (state.set(key(`${number}`), bytes('x'.repeat(1_000)), MINUTE, null)) kept.push(`${number}`)
  expect(kept.length).toBeGreaterThan(40)
  expect(kept.length).toBeLessThan(65)
  expect(state.rejected).toBe(200 - kept.length)
  for (const name of kept) expect(state.get(key(name))).toHaveLength(1_000)
  expect(state.delete(key(kept[0]))).toBe(true)
  for (const change of state.changes(1_000)) state.settle(change)
  expect(state.set(key('again'), bytes('x'.repeat(1_000)), MINUTE, null)).toBe(true)
})

test('a tenant uses at most its part; what it deletes or lets expire is free again', () => {
  vi.useFakeTimers({ now: 1_000 })
  const { state } = open(BYTES, 1_280)
  const add = (tenant: string | null, name: string, ttlMs = MINUTE) =>
    state.set(stateKey('module', tenant, name), bytes('x'), ttlMs, tenant)
  const settle = () => {
    for (const change of state.changes(1_000)) state.settle(change)
  }
  for (let number = 0; number < 10; number++) expect(add('a', `${number}`)).toBe(true)
  expect([add('a', 'more'), add('b', 'first'), add(null, 'x'), add('a', '3')]).toEqual([
    false,
    true,
    true,
    true,
  ])
  state.delete(stateKey('module', 'a', '0'))
  settle()
  expect([add('a', 'more', 50), add('a', 'yet more')]).toEqual([true, false])
  settle()
  vi.setSystemTime(1_051)
  settle()
  expect(add('a', 'yet more')).toBe(true)
})

test('values end after their time to live, at most 30 days, and an older one does not come back', () => {
  vi.useFakeTimers({ now: 0 })
  const { state } = open()
  const place = new Place()
  state.set(key('a'), bytes('old'), 0, null)
  place.write(state)
  vi.setSystemTime(30 * 86_400_000 - 1)
  expect(textOf(state.get(key('a')))).toBe('old')
  state.set(key('a'), bytes('new'), 100, null)
  vi.setSystemTime(30 * 86_400_000 + 200)
  expect(state.get(key('a'))).toBeNull()
  place.write(state)
  expect([...place.values]).toEqual([])
})

test('after a thread ended while it changed the table, control applies what was written', () => {
  const { memory, state } = open()
  const place = new Place()
  state.increment(key('n'), 3n, MINUTE, null)
  place.write(state)
  const { clears } = state
  // The state after a thread was terminated while holding the lock.
  Atomics.store(new Int32Array(memory), 0, 7 + 1)
  state.releaseDead(7)
  expect(state.clears).toBe(clears + 1)
  expect(state.increment(key('n'), 1n, MINUTE, null)).toBe(1n)
  place.fill(state)
  expect(state.get(key('n'))).toEqual(counter(4n))
})
