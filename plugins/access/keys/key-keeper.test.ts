import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { GATEWAY_TENANT, type Logger } from '#kernel'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { KeyKeeper } from './key-keeper.ts'
import type { StoredKey } from './stored-key.ts'

const config = { refreshMs: 1_000, maxStaleMs: 10_000, maxKeys: 10 }
let store: MemoryStore
let published: (readonly string[] | null)[]
let logged: string[]
let keepers: KeyKeeper[]

beforeEach(() => {
  vi.useFakeTimers()
  store = new MemoryStore()
  published = []
  logged = []
  keepers = []
})
afterEach(async () => {
  for (const keeper of keepers) await keeper.stop()
  vi.useRealTimers()
})

function open(isShared = true): KeyKeeper {
  const add = (_fields: object, message: string) => logged.push(message)
  const keeper = new KeyKeeper({
    store,
    isShared,
    channel: null,
    config,
    publish: async (keys) => void published.push(keys === null ? null : keys.map(({ id }) => id)),
    log: { info: add, warn: add } as unknown as Logger,
  })
  keepers.push(keeper)
  return keeper
}

const key = (id: string): StoredKey => ({
  id,
  digest: '0'.repeat(64),
  tenant: 'auth:a',
  role: null,
  expiresAtMs: null,
  models: null,
  routes: null,
  name: null,
  hint: 'weir_abcd',
  createdAtMs: 1,
})

test('keys of another gateway are published with the next read, and only changes are', async () => {
  const [one, two] = [open(), open()]
  await one.start()
  await two.start()
  expect(published).toEqual([[], []])
  await one.create(key('b'))
  await one.create(key('a'))
  expect(published.slice(2)).toEqual([['b'], ['a', 'b']])
  published = []
  await vi.advanceTimersByTimeAsync(config.refreshMs)
  expect(published).toContainEqual(['a', 'b'])
  published = []
  await vi.advanceTimersByTimeAsync(5 * config.refreshMs)
  expect(published).toEqual([])
  // Created by one, revoked by two before it has read it.
  await one.create(key('c'))
  await two.revoke('c')
  expect(published).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b'],
  ])
})

test('while the store is unavailable at start, keys are unknown; they are read when it is back', async () => {
  store.failure = new Error('down')
  const keeper = open(false)
  await keeper.start()
  await vi.advanceTimersByTimeAsync(5 * config.refreshMs)
  expect(published).toEqual([])
  expect(logged).toEqual(['stored keys could not be read'])
  await expect(keeper.create(key('a'))).rejects.toMatchObject({ status: 503, code: 'keys_not_loaded' })
  await expect(keeper.revoke('a')).rejects.toMatchObject({ status: 503 })
  store.failure = null
  await vi.advanceTimersByTimeAsync(config.refreshMs)
  expect(published).toEqual([[]])
  expect(logged).toEqual(['stored keys could not be read', 'recovered: stored keys could not be read'])
  // A local store has no other writer.
  expect(vi.getTimerCount()).toBe(0)
})

test('a store that does not respond does not hold up the start', async () => {
  vi.useRealTimers()
  const answer = Promise.withResolvers<void>()
  const collection = store.collection('api-keys')
  vi.spyOn(store, 'collection').mockReturnValue(
    Object.assign(collection, {
      range: () => answer.promise.then(() => ({ records: [], next: null })),
    }),
  )
  const keeper = open(false)
  await keeper.start()
  expect(published).toEqual([])
  answer.resolve()
  await expect.poll(() => published).toEqual([[]])
})

test('keys stay valid while a shared store is unavailable, for a limited time', async () => {
  const keeper = open()
  await keeper.start()
  await keeper.create(key('a'))
  await vi.advanceTimersByTimeAsync(config.refreshMs)
  published = []
  store.failure = new Error('down')
  await vi.advanceTimersByTimeAsync(config.maxStaleMs - config.refreshMs)
  expect(published).toEqual([])
  await vi.advanceTimersByTimeAsync(config.refreshMs)
  expect(published).toEqual([null])
  store.failure = null
  await vi.advanceTimersByTimeAsync(config.refreshMs)
  expect(published).toEqual([null, ['a']])
})

test('a write that fails publishes nothing; the next one does', async () => {
  const keeper = open()
  await keeper.start()
  store.failure = new Error('down')
  await expect(keeper.create(key('a'))).rejects.toThrow('down')
  expect(published).toEqual([[]])
  store.failure = null
  await keeper.create(key('a'))
  expect(published).toEqual([[], ['a']])
})

test('a damaged record is ignored and logged once', async () => {
  const records = store.collection('api-keys')
  await records.put(GATEWAY_TENANT, 'a', key('a'))
  for (const [index, damage] of [
    { digest: 'x' },
    { role: 'root' },
    { models: 'all' },
    { tenant: 1 },
  ].entries())
    await records.put(GATEWAY_TENANT, `d${index}`, { ...key('d'), ...damage })
  await open().start()
  await vi.advanceTimersByTimeAsync(3 * config.refreshMs)
  expect(published).toEqual([['a']])
  expect(logged).toEqual(Array(4).fill('stored key ignored: its record is damaged'))
})
