/** Leases of background jobs: of an earlier process, and after an outage of the store. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { StoredQueue } from './background-queue.ts'
import { openCollections } from './collections.ts'
import type { HistoryConfig } from './config.ts'

const LEASE_MS = 20_000
const config = { ownerLeaseMs: LEASE_MS } as HistoryConfig
const log = { info() {}, warn() {}, error() {} } as never

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
})

function open() {
  const store = new MemoryStore()
  const collections = openCollections(store)
  return {
    store,
    collections,
    queue: () => new StoredQueue({ ...collections, store, config, log, outage: () => null }),
  }
}

test('without its lease, the jobs of an earlier process are lost at once', async () => {
  const { collections, queue } = open()
  await collections.waitingJobs.put('a', 'resp_1', { attempts: 0 })
  const [old, next] = [queue(), queue()]
  expect(await old.claim(10, () => 10)).toHaveLength(1)
  expect(await next.claimLost(10)).toEqual([])
  await next.endLeases()
  expect(await next.claimLost(10)).toMatchObject([{ tenant: 'a', responseId: 'resp_1', attempts: 1 }])
  await Promise.all([old.stop(), next.stop()])
})

test('after an outage that let leases expire, jobs of other owners are not taken before these could renew', async () => {
  const { store, collections, queue } = open()
  await collections.waitingJobs.put('a', 'resp_1', { attempts: 0 })
  const [owner, other] = [queue(), queue()]
  expect(await owner.claim(10, () => 10)).toHaveLength(1)
  expect(await other.claimLost(10)).toEqual([])
  store.failure = new Error('it is gone')
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS)
  store.failure = null
  expect(await other.claimLost(10)).toEqual([])
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS)
  expect(await other.claimLost(10)).toEqual([])
  // One that is gone for good is noticed.
  await owner.stop()
  expect(await other.claimLost(10)).toHaveLength(1)
  await other.stop()
})
