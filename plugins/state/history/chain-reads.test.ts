import { expect, test } from 'vitest'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { openCollections } from './collections.ts'
import type { HistoryConfig } from './config.ts'
import { HistoryCache } from './history-cache.ts'
import { StoredResponses } from './response-history.ts'
import { TenantUsage } from './tenant-usage.ts'

const config = {
  maxChainResponses: 2_000,
  maxHistoryItems: 20_000,
  maxHistoryBytes: 2 ** 30,
  cacheBytes: 16 * 2 ** 20,
} as HistoryConfig

function openResponses(store: MemoryStore, collections: ReturnType<typeof openCollections>) {
  const parts = {
    ...collections,
    store,
    config,
    log: { info() {}, warn() {}, error() {} },
    outage: () => null,
  }
  return new StoredResponses(parts, new TenantUsage(parts), new HistoryCache(config.cacheBytes))
}

const message = (role: string) => ({ id: nextId('msg'), type: 'message', role, content: 'a short turn' })

function turnAfter(previousResponseId: string | null) {
  return {
    id: nextId('resp'),
    createdAtSec: 1_800_000_000,
    status: 'completed' as const,
    reply: {},
    input: [message('user')],
    output: [message('assistant')],
    previousResponseId,
    conversationId: null,
    facts: {},
  }
}

let count = 0
const nextId = (prefix: string) =>
  `${prefix}_${Date.now().toString(16).padStart(12, '0')}7${(++count).toString(16).padStart(19, '0')}`

/** Names of all store calls. */
class CountedStore extends MemoryStore {
  reads = 0
  writes = 0
  /** Reads that began while no other was in progress. */
  rounds = 0
  #pending = 0

  override collection<T>(name: string) {
    const inner = super.collection<T>(name)
    return new Proxy(inner, {
      get: (target, member) => {
        const value = Reflect.get(target, member) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          this.reads++
          if (this.#pending++ === 0) this.rounds++
          const read = (value as (...all: unknown[]) => Promise<unknown>).apply(target, args)
          return read.finally(() => this.#pending--)
        }
      },
    })
  }

  override write(changes: Parameters<MemoryStore['write']>[0]) {
    this.writes++
    return super.write(changes)
  }
}

test('turn 1,000 of a chain makes the same store calls as turn 10', async () => {
  const store = new CountedStore()
  const collections = openCollections(store)
  const responses = openResponses(store, collections)
  const asked = new Map<number, { reads: number; writes: number; items: number }>()
  let previousResponseId: string | null = null
  for (let turn = 1; turn <= 1_000; turn++) {
    store.reads = 0
    store.writes = 0
    const loaded =
      previousResponseId === null ? { items: [] } : await responses.loadChain('a', previousResponseId)
    const record = turnAfter(previousResponseId)
    const result = await responses.finish('a', record)
    expect(result).toBe('stored')
    previousResponseId = record.id
    asked.set(turn, {
      reads: store.reads,
      writes: store.writes,
      items: 'items' in loaded ? loaded.items.length : -1,
    })
  }
  expect(asked.get(10)).toEqual({ reads: 1, writes: 1, items: 18 })
  expect(asked.get(1_000)).toEqual({ reads: 1, writes: 1, items: 1_998 })
})

test('a history is kept in memory from its first continuation on', async () => {
  const store = new CountedStore()
  const responses = openResponses(store, openCollections(store))
  const first = turnAfter(null)
  await responses.finish('a', first)
  const readsOf = async (id: string) => {
    store.reads = 0
    store.rounds = 0
    const loaded = await responses.loadChain('a', id)
    const { reads, rounds } = store
    return { reads, rounds, items: 'items' in loaded ? loaded.items.length : -1 }
  }
  // Its record beside the mark of its chain, and the turns.
  expect(await readsOf(first.id)).toEqual({ reads: 3, rounds: 2, items: 2 })
  const second = turnAfter(first.id)
  await responses.finish('a', second)
  expect(await readsOf(second.id)).toEqual({ reads: 1, rounds: 1, items: 4 })
})

test('a turn with only new ids is written without reads: none of its changes has a condition', async () => {
  const store = new CountedStore()
  const seen: unknown[] = []
  const write = store.write.bind(store)
  store.write = (changes) => {
    seen.push(changes.map(({ onlyIf }) => onlyIf))
    return write(changes)
  }
  const collections = openCollections(store)
  const responses = openResponses(store, collections)
  const turn = (previousResponseId: string | null, hasNewIds: boolean) => ({
    ...turnAfter(previousResponseId),
    hasNewIds,
  })
  const first = turn(null, true)
  expect(await responses.finish('a', first)).toBe('stored')
  // Only its place in the chain may be taken.
  expect(await responses.finish('a', turn(first.id, true))).toBe('stored')
  expect(await responses.finish('a', turn(null, false))).toBe('stored')
  const no = undefined
  expect(seen).toEqual([
    [no, no, no, no, no],
    [null, no, no, no, no],
    [no, null, no, null, no],
  ])
})
