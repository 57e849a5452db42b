import { expect, test, vi } from 'vitest'
import type { Change, Logger } from '#kernel'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { Ledger, openUsageRecords } from './ledger.ts'
import { noUsage, type UsageRow } from './usage-record.ts'

const OPTIONS = { keepDays: 100_000, isSynced: false, onStored: () => {} }
const log = { info() {}, warn() {}, error() {} } as unknown as Logger
const row = (more: Partial<UsageRow> = {}): UsageRow => ({
  ...noUsage(),
  tenant: 'auth:a',
  key: '',
  model: 'm',
  day: '2026-11-26',
  requests: 1,
  output: 5,
  ...more,
})

async function outputs(store: MemoryStore, tenant = 'auth:a'): Promise<Record<string, number>> {
  const rows = await openUsageRecords(store).list(tenant)
  return Object.fromEntries(rows.map(({ day, key, model, output }) => [`${day} ${key} ${model}`, output]))
}

/** The next write happens, but its outcome is not reported. */
class UncertainStore extends MemoryStore {
  loses: 'outcome' | 'write' | null = null

  override async write(changes: readonly Change[]): Promise<string | null> {
    const { loses } = this
    this.loses = null
    if (loses === 'write') throw new Error('connection lost before the write')
    const version = await super.write(changes)
    if (loses === 'outcome') throw new Error('connection lost after the write')
    return version
  }
}

test('usage adds up by tenant, key, model and day, over several ledgers of one store', async () => {
  const store = new MemoryStore()
  const [one, other] = [new Ledger(store, OPTIONS, log), new Ledger(store, OPTIONS, log)]
  for (let i = 0; i < 20; i++)
    await Promise.all([
      one.add([row(), row({ key: 'k' })]),
      other.add([row(), row({ tenant: 'auth:b' }), row({ day: '2026-11-27' })]),
      one.add([row({ model: 'n' })]),
    ])
  expect(await outputs(store)).toEqual({
    '2026-11-26  m': 200,
    '2026-11-26 k m': 100,
    '2026-11-26  n': 100,
    '2026-11-27  m': 100,
  })
  expect(await outputs(store, 'auth:b')).toEqual({ '2026-11-26  m': 100 })
})

test.each(['outcome', 'write'] as const)('a lost %s: the usage is stored once', async (loses) => {
  const store = new UncertainStore()
  const ledger = new Ledger(store, OPTIONS, log)
  await ledger.add([row()])
  store.loses = loses
  await expect(ledger.add([row()])).rejects.toMatchObject({ code: 'usage_not_recorded', status: 503 })
  // What follows a failed write is rejected at once, and stored with the next.
  await expect(ledger.add([row()])).rejects.toMatchObject({ status: 503 })
  await expect(ledger.add([])).rejects.toMatchObject({ status: 503 })
  await vi.waitFor(() => ledger.add([]), { timeout: 10_000 })
  expect(await outputs(store)).toEqual({ '2026-11-26  m': 15 })
})

test('a failing write rejects those who wait behind it', async () => {
  const failing = Promise.withResolvers<null>()
  const store = new MemoryStore()
  const ledger = new Ledger(store, OPTIONS, log)
  await ledger.add([row()])
  store.write = () => failing.promise
  const first = ledger.add([row()])
  await new Promise((resolve) => setImmediate(resolve))
  const [behind, reading] = [ledger.add([row()]), ledger.readBetweenWrites(async () => 1)]
  failing.reject(new Error('disk full'))
  for (const waiting of [first, behind, reading])
    await expect(waiting).rejects.toMatchObject({ code: 'usage_not_recorded' })
  await ledger.stop()
})

test('stop stores what is pending, and does not wait for a store that fails: it logs what is lost', async () => {
  const store = new MemoryStore()
  const lines: object[] = []
  const ledger = new Ledger(store, OPTIONS, {
    warn() {},
    error: (fields: object) => void lines.push(fields),
  } as unknown as Logger)
  void ledger.add([row()])
  await ledger.stop()
  expect(await outputs(store)).toEqual({ '2026-11-26  m': 5 })
  store.failure = new Error('no store')
  ledger.add([row(), row({ model: 'n' })]).catch(() => undefined)
  await ledger.stop()
  expect(lines.at(-1)).toEqual({ requests: 2, input_tokens: 0, output_tokens: 10, cost: 0 })
})

test('names that no store takes are recorded as other', async () => {
  const store = new MemoryStore()
  const ledger = new Ledger(store, OPTIONS, log)
  await ledger.add([row({ tenant: 'x'.repeat(2_000), model: 'm'.repeat(1_000) })])
  expect(await outputs(store, 'other')).toEqual({ '2026-11-26  other': 5 })
})

test('a reading between writes sees every earlier write, and no later one', async () => {
  const store = new MemoryStore()
  const ledger = new Ledger(store, OPTIONS, log)
  await ledger.add([row()])
  let later: Promise<void> | null = null
  await ledger.readBetweenWrites(async () => {
    const before = await outputs(store)
    later = ledger.add([row()])
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await outputs(store)).toEqual(before)
    expect([...ledger.unstored()]).toHaveLength(1)
  })
  await later
  expect(await outputs(store)).toEqual({ '2026-11-26  m': 10 })
})
