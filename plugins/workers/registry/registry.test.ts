import { beforeEach, expect, test } from 'vitest'
import type { WorkerStatus, WorkerTable } from '#kernel'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import { Registry } from './registry.ts'
import type { Findings } from './worker.ts'
import { toWorkerSpec } from './worker-spec.ts'

const ROWS = 6
let taken: Set<number>
let statuses: Map<number, WorkerStatus>
let tables: WorkerTable[]
let registry: Registry

beforeEach(() => {
  taken = new Set()
  statuses = new Map()
  tables = []
  registry = new Registry({
    config: defaultConfig(),
    publish: async (table) => void tables.push(table),
    balance: {
      allocateSlot: () => {
        const slot = Array.from({ length: ROWS }, (_, row) => row).find((row) => !taken.has(row))
        if (slot === undefined) throw new Error('no row')
        taken.add(slot)
        return slot
      },
      freeSlot: (slot) => void taken.delete(slot),
      setStatus: (slot, status) => void statuses.set(slot, status),
      status: (slot) => statuses.get(slot) ?? 'pending',
    },
  })
})

const findings = (rankCount?: number): Findings => ({
  connectionMode: 'http',
  runtimeType: 'sglang',
  models: [],
  labels: {},
  ...(rankCount !== undefined && { rankCount }),
})
const add = (rankCount?: number, url = 'http://e:1') =>
  registry.add({ ids: ['id-a'], spec: toWorkerSpec({ url }), findings: findings(rankCount), origin: 'api' })
const urls = () => tables.at(-1)?.workers.map((entry) => entry.url)

test('each rank of an engine is a worker with the URL of the engine, @ and the rank; the first has the reserved id', async () => {
  const workers = await add(3)
  expect(workers[0].id).toBe('id-a')
  expect(urls()?.toSorted()).toEqual(['http://e:1@0', 'http://e:1@1', 'http://e:1@2'])
  expect(workers.map(({ entry }) => entry.dataParallel)).toEqual(
    [0, 1, 2].map((rank) => ({ baseUrl: 'http://e:1', rank, size: 3 })),
  )
  for (const worker of workers) expect(registry.engineOf(worker)).toEqual(workers)
  expect(registry.byUrl('http://E:1/v1/')).toBe(workers[0])
})

test('an engine that returns with more ranks gains workers, with fewer it loses the last ones; the others stay', async () => {
  const [first] = await add(2)
  const grown = await registry.redescribe(registry.engineOf(first), first.spec, findings(4))
  expect(grown.map(({ id, entry }) => [id === first.id, entry.slot, entry.revision])).toEqual([
    [true, 0, 2],
    [false, 1, 2],
    [false, 2, 1],
    [false, 3, 1],
  ])
  const shrunk = await registry.redescribe(grown, first.spec, findings())
  expect(shrunk.map(({ id, entry }) => [id, entry.url, entry.dataParallel])).toEqual([
    ['id-a', 'http://e:1', null],
  ])
  expect(urls()).toEqual(['http://e:1'])
  expect([...taken]).toEqual([0])
})

test('an engine with more ranks than free rows is not registered', async () => {
  await expect(add(ROWS + 1)).rejects.toThrow('no row')
  expect(taken.size).toBe(0)
  expect(registry.workers()).toEqual([])
})

test('an engine is removed with all its ranks, and its rows are free', async () => {
  const workers = await add(3)
  await registry.remove(registry.engineOf(workers[2]))
  expect(urls()).toEqual([])
  expect(taken.size).toBe(0)
  expect(registry.byUrl('http://e:1')).toBeUndefined()
})
