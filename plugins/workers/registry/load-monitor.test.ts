import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EngineLoads, EngineReport, WorkerStatus } from '#kernel'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import type { OverloadLimits } from './config.ts'
import { LoadMonitor } from './load-monitor.ts'
import { buildWorker, type Worker } from './worker.ts'
import { toWorkerSpec } from './worker-spec.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }

let workers: Worker[]
let statuses: Map<number, WorkerStatus>
let asked: string[]
let forgotten: string[]
let answer: (url: string) => EngineReport | null | Promise<EngineReport | null>
let published: EngineLoads[]
let isWanted: boolean
let overload: OverloadLimits | null
let told: string[]
let monitor: LoadMonitor

const used = (usedTokens: number): EngineReport => {
  const counts = {
    runningRequests: -1,
    waitingRequests: -1,
    maxRequests: -1,
    queuedTokens: -1,
    maxTokens: -1,
  }
  const rank = { rank: 0, kvUsage: -1, tokensPerSecond: 0, cacheHitRate: -1, utilization: -1 }
  return { timestamp: null, ranks: [{ ...rank, ...counts, usedTokens }] }
}

function worker(slot: number, spec: object = {}, connectionMode = 'http'): Worker {
  statuses.set(slot, 'ready')
  const parts = {
    id: `id-${slot}`,
    spec: toWorkerSpec({ url: `http://w${slot}:1`, ...spec }),
    findings: { connectionMode, runtimeType: 'sglang', models: [{ id: 'm' }], labels: {} },
    origin: 'api',
    rank: null,
  } as const
  return buildWorker(parts, slot, 1, defaultConfig())
}

beforeEach(() => {
  vi.useFakeTimers()
  workers = []
  statuses = new Map()
  asked = []
  forgotten = []
  answer = () => used(1)
  published = []
  isWanted = true
  overload = null
  told = []
  monitor = new LoadMonitor({
    workers: () => workers,
    balance: { status: (slot) => statuses.get(slot) ?? 'pending' },
    controlOf: (mode) =>
      mode === 'lines'
        ? {}
        : {
            loads: async ({ url }) => {
              asked.push(url)
              return answer(url)
            },
            forget: ({ url }) => void forgotten.push(url),
          },
    intervalSecs: 10,
    get overload() {
      return overload
    },
    isWanted: () => isWanted,
    publish: async (loads) => void published.push(loads),
    metrics: null,
    log: {
      ...silent,
      info: (_, text) => void told.push(String(text)),
      warn: (_, text) => void told.push(String(text)),
    },
  })
  monitor.start()
})
afterEach(() => {
  monitor.stop()
  vi.useRealTimers()
})

const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1_000)
const lastUsed = () => published.at(-1)?.bySlot.map((load) => load?.usedTokens ?? null)

test('all ready workers are polled each period, and a round is published once, by slot', async () => {
  workers = [worker(0), worker(2), worker(1)]
  statuses.set(1, 'not_ready')
  answer = (url) => used(url === 'http://w0:1' ? 10 : 20)
  await seconds(1)
  expect(asked.length).toBe(2)
  expect(published.length).toBe(1)
  expect(lastUsed()).toEqual([10, null, 20])
  await seconds(9)
  expect(asked.length).toBe(2)
  await seconds(1)
  expect(asked.length).toBe(4)
  expect(published.length).toBe(2)
})

test('the shortest period among the workers of one model applies to all of them', async () => {
  workers = [worker(0, { load_monitor_interval_secs: 2 }), worker(1), worker(2, { worker_type: 'decode' })]
  await seconds(5)
  const count = (url: string) => asked.filter((path) => path.startsWith(url)).length
  expect([count('http://w0:1'), count('http://w1:1'), count('http://w2:1')]).toEqual([3, 3, 1])
  expect(published.at(-1)?.bySlot.map((load) => load?.periodMs)).toEqual([2_000, 2_000, 10_000])
})

test('a worker that fails, is not ready or is removed drops out', async () => {
  workers = [worker(0), worker(1), worker(2)]
  await seconds(1)
  expect(lastUsed()).toEqual([1, 1, 1])
  answer = (url) => {
    return url === 'http://w0:1' ? null : used(2)
  }
  await seconds(10)
  expect(lastUsed()).toEqual([null, 2, 2])
  statuses.set(1, 'draining')
  await seconds(1)
  expect(lastUsed()).toEqual([null, null, 2])
  const left = workers.splice(2)
  await monitor.forget(left)
  expect(lastUsed()).toEqual([])
})

test('no engine is polled while nothing reads loads, and known loads are withdrawn', async () => {
  workers = [worker(0)]
  await seconds(1)
  isWanted = false
  await seconds(30)
  expect(asked.length).toBe(1)
  expect(lastUsed()).toEqual([])
  isWanted = true
  await seconds(1)
  expect(lastUsed()).toEqual([1])
})

test('a worker that changed or returned is forgotten first, as it may be another engine', async () => {
  workers = [worker(0)]
  await seconds(1)
  workers = [{ ...workers[0], entry: { ...workers[0].entry, revision: 2 } }]
  await seconds(1)
  expect(asked.length).toBe(2)
  expect(forgotten).toEqual([])
  statuses.set(0, 'not_ready')
  await seconds(1)
  expect(forgotten).toEqual(['http://w0:1'])
})

test('engines of a mode without load reports are not polled', async () => {
  workers = [worker(0, {}, 'lines'), worker(1)]
  await seconds(1)
  expect(asked).toEqual(['http://w1:1'])
  expect(lastUsed()).toEqual([null, 1])
})

test('one slow engine does not delay the polling and publishing of others', async () => {
  workers = [worker(0, { load_monitor_interval_secs: 1 }), worker(1)]
  const gate = Promise.withResolvers<EngineReport>()
  answer = (url) => (url === 'http://w0:1' ? gate.promise : used(asked.length))
  await seconds(4)
  expect(asked.filter((path) => path.startsWith('http://w0:1')).length).toBe(1)
  expect(asked.length).toBe(5)
  expect(lastUsed()).toEqual([null, 5])
  gate.resolve(used(9))
  await seconds(0)
  expect(lastUsed()).toEqual([9, 5])
})

test('of 2,000 workers at most 128 are polled at once, and each once per period', async () => {
  workers = Array.from({ length: 2_000 }, (_, slot) => worker(slot))
  let running = 0
  let most = 0
  answer = async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, 20))
    running--
    return used(1)
  }
  await seconds(12)
  expect(most).toBeLessThanOrEqual(128)
  expect(new Set(asked).size).toBe(2_000)
  expect(published.length).toBeLessThan(30)
})

test('overload is published to the threads only while it exists, and logged when it starts and ends', async () => {
  const waiting = (waitingRequests: number): EngineReport => {
    const { ranks } = used(1)
    return { timestamp: null, ranks: [{ ...ranks[0], waitingRequests }] }
  }
  const last = () => {
    const { bySlot, overload: mode } = published.at(-1) as EngineLoads
    return [mode, ...bySlot.map((load) => load?.isOverloaded ?? false)]
  }
  workers = [worker(0), worker(1)]
  let count = 9
  answer = (url) => waiting(url === 'http://w0:1' ? count : 0)
  await seconds(1)
  expect(last()).toEqual([undefined, false, false])
  overload = { waitingRequests: 8, kvUsage: 0.8, shed: false }
  await seconds(20)
  expect(last()).toEqual(['avoid', true, false])
  overload = { ...overload, shed: true }
  await seconds(10)
  expect(last()).toEqual(['shed', true, false])
  count = 7
  await seconds(10)
  expect(last()).toEqual([undefined, false, false])
  expect(told).toEqual(['engine overloaded', 'engine no longer overloaded'])
})
