/** Keys of sealed text: created once by any process, and never beside a configured key. */
import { expect, test, vi } from 'vitest'
import { storageUnavailable } from '#shared'
import { MemoryStore } from '../../../../test/support/memory-store.ts'
import { type KeyStores, loadKeys, sealKeyLoader } from './seal-keys.ts'

const quiet = { warn() {}, error() {} }

const keysOf = async (stores: KeyStores, isConfigured: boolean) => (await loadKeys(stores, isConfigured)).keys

function makeLog() {
  const lines: unknown[][] = []
  const take = (...line: unknown[]) => lines.push(line)
  return { lines, log: { warn: take, error: take } as never }
}

const record = (store: MemoryStore) => store.collection<unknown>('gateway-secrets').list('_gateway')

test('concurrent and later loads return the same key', async () => {
  const { lines, log } = makeLog()
  const shared = new MemoryStore()
  const stores = { shared, own: undefined, log }
  const loaded = await Promise.all(Array.from({ length: 8 }, () => keysOf(stores, false)))
  for (const keys of [...loaded, await keysOf(stores, true)]) expect(keys).toEqual(loaded[0])
  expect(loaded[0]).toHaveLength(1)
  expect(await record(shared)).toHaveLength(1)
  expect(lines).toEqual([])
})

test("the shared key comes first; the gateway's own key is read and not created", async () => {
  const { log } = makeLog()
  const [shared, own] = [new MemoryStore(), new MemoryStore()]
  const [old] = await keysOf({ shared: undefined, own, log }, false)
  const keys = await keysOf({ shared, own, log }, false)
  expect([keys.length, keys[1]]).toEqual([2, old])
  const fresh = new MemoryStore()
  await keysOf({ shared, own: fresh, log }, false)
  expect(await record(fresh)).toEqual([])
})

test('no key is created beside a configured one; without a store one log line names the setting', async () => {
  const { lines, log } = makeLog()
  const own = new MemoryStore()
  expect(await keysOf({ shared: undefined, own, log }, true)).toEqual([])
  expect(await record(own)).toEqual([])
  expect(await keysOf({ shared: undefined, own: undefined, log }, true)).toEqual([])
  expect(lines).toEqual([])
  const [key] = await keysOf({ shared: undefined, own: undefined, log }, false)
  expect(key).toHaveLength(32)
  expect(lines).toEqual([
    [{ setting: 'plugins.responses.encryptionKey' }, expect.stringContaining('enable storage or postgres')],
  ])
  expect(JSON.stringify(lines)).not.toContain(key.toString('base64'))
})

test('a failing or corrupt store gives a key for this process and an error in the log', async () => {
  const failing = new MemoryStore()
  failing.failure = new Error('no disk')
  const spoilt = new MemoryStore()
  await spoilt.collection('gateway-secrets').put('_gateway', 'responses-seal-key', { key: 'c2hvcnQ=' })
  for (const own of [failing, spoilt]) {
    const { lines, log } = makeLog()
    expect((await keysOf({ shared: undefined, own, log }, false)).map(({ length }) => length)).toEqual([32])
    expect(await keysOf({ shared: undefined, own, log }, true)).toEqual([])
    expect(lines).toHaveLength(2)
    expect(String((lines[0][0] as { err: Error }).err)).not.toContain('c2hvcnQ')
  }
  expect(await record(spoilt)).toEqual([{ key: 'c2hvcnQ=' }])
})

test('a key made while the store is down is replaced by the stored one, and still opens', async () => {
  vi.useFakeTimers()
  try {
    const store = new MemoryStore()
    const [stored] = await keysOf({ shared: store, own: undefined, log: makeLog().log }, false)
    store.failure = storageUnavailable('it is gone')
    let isDown = true
    const published: (readonly string[])[] = []
    const publish = async (keys: readonly string[]) => void published.push(keys)
    const stores = { shared: store, own: undefined, log: { ...quiet, info() {} } }
    const loader = sealKeyLoader(stores as never, false, () => isDown, publish)
    await loader.start()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(published).toHaveLength(1)
    const [[temporary]] = published
    store.failure = null
    isDown = false
    await vi.advanceTimersByTimeAsync(1_000)
    expect(published.slice(1)).toEqual([[stored.toString('base64'), temporary]])
    await vi.advanceTimersByTimeAsync(5_000)
    expect(published).toHaveLength(2)
    loader.stop()
  } finally {
    vi.useRealTimers()
  }
})
