/** Registrations that overlap with other operations. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  type Logger,
  NO_PENDING_WORKERS,
  type PendingWorkers,
  type WorkerControl,
  type WorkerControls,
  type WorkerRegistration,
  type WorkerStatus,
} from '#kernel'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import { ConfiguredWorkers } from './configured-workers.ts'
import type { ControlParts } from './control-parts.ts'
import { JOB_LIMITS, JobRunner } from './jobs.ts'
import { WorkerManager } from './manager.ts'
import { pairDisagreements, Registrations } from './registrations.ts'
import { Registry } from './registry.ts'
import { Removals } from './removals.ts'
import { type SavedWorker, SavedWorkers } from './saved-workers.ts'
import { buildWorker } from './worker.ts'
import { toWorkerSpec } from './worker-spec.ts'

const URL = 'http://e:1'
const quiet = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Logger

let store: MemoryStore
let statuses: Map<number, WorkerStatus>
let described: WorkerRegistration[]
let isDown: boolean
let pending: PendingWorkers
/** Holds back a published table until it is released. */
let gate: { readonly held: Promise<void>; readonly release: () => void; isReached: boolean } | null
let forgetting: Promise<void>
let jobs: JobRunner
let registry: Registry
let manager: WorkerManager
let configured: ConfiguredWorkers

beforeEach(() => {
  store = new MemoryStore()
  statuses = new Map()
  described = []
  isDown = false
  pending = NO_PENDING_WORKERS
  gate = null
  forgetting = Promise.resolve()
  const defaults = defaultConfig()
  const config = { ...defaults, health: { ...defaults.health, drain_settle_secs: 0 } }
  let slots = 0
  const balance = {
    allocateSlot: () => slots++,
    freeSlot: () => {},
    setStatus: (slot: number, status: WorkerStatus) => void statuses.set(slot, status),
    status: (slot: number) => statuses.get(slot) ?? 'pending',
    inFlight: () => 0,
  }
  registry = new Registry({
    config,
    balance,
    publish: async () => {
      if (gate === null) return
      gate.isReached = true
      await gate.held
    },
    publishPending: async (next) => {
      pending = next
    },
  })
  const control: Partial<WorkerControl> = {
    mode: 'http',
    isExternal: () => false,
    describe: async (registration, { note }) => {
      described.push(registration)
      if (isDown) {
        note('it refuses connections')
        throw new Error(`${registration.url} did not come up in time`)
      }
      return { runtimeType: 'sglang', apis: [], isExternal: false, models: [], labels: {} }
    },
  }
  jobs = new JobRunner(quiet, (url) => registry.dropReservation(url))
  const parts = {
    registry,
    jobs,
    checks: { watch() {}, unwatch() {}, stop() {} },
    loads: { forget: () => forgetting, start() {}, stop() {} },
    saved: new SavedWorkers(store),
    balance,
    controls: { controlFor: () => control, controlOf: () => control } as unknown as WorkerControls,
    config,
    maxWorkers: 10,
    log: quiet,
  } as unknown as ControlParts
  const registrations = new Registrations(parts)
  manager = new WorkerManager(parts, registrations, new Removals(parts))
  configured = new ConfiguredWorkers(parts, registrations, manager)
})
afterEach(() => {
  jobs.stop()
  vi.useRealTimers()
})

function holdTables(): { release(): void; reached(): Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const own = { held: promise, release: resolve, isReached: false }
  gate = own
  return {
    release: () => {
      gate = null
      resolve()
    },
    reached: () => vi.waitFor(() => expect(own.isReached).toBe(true)),
  }
}

const saved = () => store.collection<SavedWorker>('workers').list('_gateway')
const isIdle = () => vi.waitFor(() => expect(jobs.isUnfinished(URL, 'AddWorker')).toBe(false))
const isGone = (id: string) => vi.waitFor(() => expect(registry.byId(id)).toBeUndefined())

async function register(): Promise<string> {
  const { id } = manager.register(toWorkerSpec({ url: URL }))
  await vi.waitFor(() => expect(statuses.get(registry.byId(id)?.entry.slot ?? -1)).toBe('ready'))
  return id
}

test('changes that another gateway has accepted do not wait for room in the queue', async () => {
  const id = await register()
  const blocked = Promise.withResolvers<void>()
  const { maxRunning, maxQueued } = JOB_LIMITS
  for (let n = 0; n < maxRunning + maxQueued; n++)
    jobs.submit(
      { kind: 'AddWorker', url: `http://other:${n}`, budgetMs: Number.POSITIVE_INFINITY },
      () => blocked.promise,
    )
  const changed = toWorkerSpec({ url: URL, priority: 7 })
  expect(() => manager.replace(id, changed)).toThrow(/queue/)
  expect(() => manager.remove(id)).toThrow(/queue/)
  manager.adopt(changed, 'mesh', true)
  manager.drop(URL)
  expect(statuses.get(registry.byId(id)?.entry.slot ?? -1)).toBe('draining')
  blocked.resolve()
  await isGone(id)
})

test('a worker removed while its registration is published does not return after a restart', async () => {
  const tables = holdTables()
  const { id } = manager.register(toWorkerSpec({ url: URL }))
  await tables.reached()
  manager.remove(id)
  tables.release()
  await isGone(id)
  expect(await saved()).toEqual([])
})

test('a worker removed while its replacement is published does not return after a restart', async () => {
  const id = await register()
  const tables = holdTables()
  manager.replace(id, { ...toWorkerSpec({ url: URL }), priority: 9 })
  await tables.reached()
  manager.remove(id)
  tables.release()
  await isGone(id)
  expect(await saved()).toEqual([])
})

test('a change during a replacement is not lost', async () => {
  const id = await register()
  const forgotten = Promise.withResolvers<void>()
  forgetting = forgotten.promise
  manager.replace(id, { ...toWorkerSpec({ url: URL }), priority: 9 })
  await vi.waitFor(() => expect(described).toHaveLength(2))
  manager.patch(id, { priority: 3 })
  await vi.waitFor(() => expect(registry.byId(id)?.spec.priority).toBe(3))
  forgotten.resolve()
  await isIdle()
  expect(registry.byId(id)?.spec.priority).toBe(3)
  expect((await saved()).map(({ spec }) => spec.priority)).toEqual([3])
})

test('a change while a new worker is published is saved, and the worker serves', async () => {
  const tables = holdTables()
  const { id } = manager.register(toWorkerSpec({ url: URL }))
  await tables.reached()
  manager.patch(id, { priority: 3 })
  await vi.waitFor(() => expect(registry.byId(id)?.spec.priority).toBe(3))
  tables.release()
  await vi.waitFor(() => expect(statuses.get(registry.byId(id)?.entry.slot ?? -1)).toBe('ready'))
  expect((await saved()).map(({ spec }) => spec.priority)).toEqual([3])
})

test('a change of a worker that is being removed is not kept', async () => {
  const id = await register()
  const forgotten = Promise.withResolvers<void>()
  forgetting = forgotten.promise
  manager.remove(id)
  await vi.waitFor(async () => expect(await saved()).toEqual([]))
  manager.patch(id, { priority: 3 })
  await vi.waitFor(() => expect(jobs.isUnfinished(URL, 'UpdateWorker')).toBe(false))
  forgotten.resolve()
  await isGone(id)
  expect(await saved()).toEqual([])
})

test('a configured worker that does not start in time is queried again until it starts', async () => {
  vi.useFakeTimers()
  isDown = true
  configured.reload({ urls: [], workers: [{ url: URL }] })
  await vi.advanceTimersByTimeAsync(86_400_000)
  // After 30 s, 1, 2, 4 and 8 minutes, then every ten minutes.
  expect(described).toHaveLength(148)
  const problem = `${URL} did not come up in time`
  const listed = { url: URL, status: 'pending', job_status: { status: 'processing', message: problem } }
  expect(manager.list({}).workers).toMatchObject([listed])
  // Clients get the reason too, without the address.
  await expect.poll(() => pending).toMatchObject({ count: 1, problem: 'it did not come up in time' })
  isDown = false
  await vi.advanceTimersByTimeAsync(600_000)
  expect(statuses.get(registry.workers()[0].entry.slot)).toBe('ready')
  await expect.poll(() => pending).toEqual({ ...NO_PENDING_WORKERS, configured: 1 })
})

test('an added worker is not queried again: it stays listed with the reason, which clients receive as well', async () => {
  vi.useFakeTimers()
  isDown = true
  const { id } = manager.register(toWorkerSpec({ url: URL }))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(described).toHaveLength(1)
  const problem = `${URL} did not come up in time`
  expect(manager.list({}).workers).toMatchObject([
    { id, url: URL, status: 'pending', job_status: { status: 'failed', message: problem } },
  ])
  await expect.poll(() => pending).toMatchObject({ count: 1, problem: 'it refuses connections' })
})

test('a service configured by a reload is trusted like one configured at startup', async () => {
  const named = { url: 'https://llm.corp', provider: 'openai' } as const
  configured.reload({ urls: [], workers: [named] })
  await vi.waitFor(() => expect(described).toMatchObject([{ provider: 'openai', isConfigured: true }]))
  configured.reload({ urls: [], workers: [] })
  await vi.waitFor(() => expect(registry.workers()).toEqual([]))
  manager.register({ ...toWorkerSpec({ url: named.url }), carried: { provider: 'openai' } })
  await vi.waitFor(() => expect(described).toHaveLength(2))
  expect(described[1].isConfigured).toBe(false)
})

test.each<[string | undefined, string | undefined, boolean]>([
  [undefined, 'openai', false],
  ['openai', 'anthropic', false],
  ['openai', undefined, false],
  ['openai', 'openai', true],
  [undefined, undefined, true],
])(
  'a PUT on a configured worker of provider %s with provider %s is trusted with keys: %s',
  async (named, put, isTrusted) => {
    const carried = (provider: string | undefined) => (provider === undefined ? {} : { provider })
    configured.reload({ urls: [], workers: [{ url: URL, ...carried(named) }] })
    await vi.waitFor(() => expect(registry.workers()).toHaveLength(1))
    await isIdle()
    manager.replace(registry.workers()[0].id, { ...toWorkerSpec({ url: URL }), carried: carried(put) })
    await vi.waitFor(() => expect(described).toHaveLength(2))
    expect(described.map(({ isConfigured }) => isConfigured)).toEqual([true, isTrusted])
  },
)

const worker = (name: string, worker_type: 'regular' | 'prefill' | 'decode', labels = {}, model = 'm') =>
  buildWorker(
    {
      id: name,
      spec: toWorkerSpec({ url: `http://${name}:1`, worker_type, labels }),
      findings: { connectionMode: 'http', runtimeType: 'sglang', models: [{ id: model }], labels: {} },
      origin: 'api',
      rank: null,
    },
    0,
    1,
    defaultConfig(),
  )

test('labels of a prefill worker that differ from decode workers are reported once per label', () => {
  const prefill = worker('p', 'prefill', { tp_size: '4', dp_size: '1', load_balance_method: 'round_robin' })
  const all = [
    prefill,
    worker('p2', 'prefill', { tp_size: '8' }),
    worker('other', 'decode', { tp_size: '2' }, 'another model'),
    worker('alike', 'decode', { tp_size: '4', dp_size: '1' }),
    worker('d1', 'decode', { tp_size: '8', dp_size: '1' }),
    worker('d2', 'decode', { tp_size: '16', load_balance_method: 'shortest' }),
  ]
  expect(pairDisagreements(prefill, all)).toEqual([
    { label: 'tp_size', value: '4', peer: 'http://d1:1', peerValue: '8' },
    { label: 'load_balance_method', value: 'round_robin', peer: 'http://d2:1', peerValue: 'shortest' },
  ])
})

test('regular workers and workers without these labels have no differences', () => {
  const decode = worker('d', 'decode', { tp_size: '8' })
  expect(pairDisagreements(worker('r', 'regular', { tp_size: '4' }), [decode])).toEqual([])
  expect(pairDisagreements(worker('p', 'prefill'), [decode])).toEqual([])
  expect(pairDisagreements(decode, [worker('p', 'prefill')])).toEqual([])
})
