import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { WorkerStatus } from '#kernel'
import { defaultConfig } from './config.ts'
import { HealthChecks } from './health-checks.ts'
import { specOfUrl } from './spec.ts'
import { buildWorker, type Worker } from './worker.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }

let statuses: Map<number, WorkerStatus>
let isUp: boolean | undefined
let probes: string[]
let results: string[]
let failed: string[]
let onFailed: () => void
let pending: (() => void)[] | null
let checks: HealthChecks

beforeEach(() => {
  vi.useFakeTimers()
  statuses = new Map()
  isUp = true
  probes = []
  results = []
  failed = []
  onFailed = () => {}
  pending = null
  checks = new HealthChecks({
    balance: {
      status: (slot) => statuses.get(slot) ?? 'pending',
      setStatus: (slot, status) => void statuses.set(slot, status),
    },
    log: silent,
    engineOf: (worker) => [worker],
    counter: {
      labels: (type, result) => ({ value: 0, inc: () => void results.push(`${type} ${result}`) }),
      remove() {},
    },
    probe: async (worker) => {
      probes.push(worker.spec.url)
      if (pending !== null) await new Promise<void>((resolve) => pending?.push(resolve))
      return isUp === undefined ? undefined : isUp ? null : 'down'
    },
    onFailed: (worker) => {
      failed.push(worker.id)
      onFailed()
    },
    random: () => 0.5,
  })
})
afterEach(() => {
  checks.stop()
  vi.useRealTimers()
})

function worker(slot: number, health = {}, revision = 1): Worker {
  const spec = { ...specOfUrl(`http://w${slot}:1`), health }
  const findings = { connectionMode: 'http', runtimeType: 'vllm', models: [], labels: {} } as const
  return buildWorker(
    { id: `id-${slot}`, spec, findings, origin: 'api', rank: null },
    slot,
    revision,
    defaultConfig(),
  )
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

test('a new worker is probed at once and then at its interval', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0))
  await pass(0)
  expect(probes.length).toBe(1)
  await pass(59_999)
  expect(probes.length).toBe(1)
  await pass(1)
  expect(probes.length).toBe(2)
  expect(results).toEqual(['regular success', 'regular success'])
})

test('thresholds and interval of the worker win over the gateway’s', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 1, successThreshold: 1 }))
  await pass(0)
  expect(statuses.get(0)).toBe('not_ready')
  isUp = true
  await pass(1_000)
  expect(statuses.get(0)).toBe('ready')
})

test('a worker without health checks is never probed', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0, { isDisabled: true }))
  await pass(600_000)
  expect(probes).toEqual([])
})

test('a worker that has failed is told once, probed with growing pauses, and comes back by itself', async () => {
  statuses.set(0, 'pending')
  isUp = false
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 1 }))
  await pass(20_000)
  expect(statuses.get(0)).toBe('failed')
  expect(failed).toEqual(['id-0'])
  const count = probes.length
  expect(count).toBeGreaterThan(10)
  await pass(3_600_000)
  expect(failed).toEqual(['id-0'])
  // Seconds 2, 4, 8 … 512, then every ten minutes.
  expect(probes.length - count).toBeGreaterThan(8)
  expect(probes.length - count).toBeLessThan(15)
  isUp = true
  await pass(601_000)
  expect(statuses.get(0)).toBe('ready')
})

test('a failed worker that somebody takes out is probed no more', async () => {
  statuses.set(0, 'pending')
  isUp = false
  const leaving = worker(0, { intervalSecs: 1, failureThreshold: 1 })
  onFailed = () => checks.unwatch(leaving.id)
  checks.watch(leaving)
  await pass(3_600_000)
  expect(probes.length).toBe(10)
})

test('a probe of an older revision changes nothing', async () => {
  statuses.set(0, 'ready')
  pending = []
  isUp = false
  const strict = { failureThreshold: 1 }
  checks.watch(worker(0, strict, 1))
  await pass(0)
  checks.watch(worker(0, { ...strict, isDisabled: true }, 2))
  for (const resolve of pending) resolve()
  await pass(0)
  expect(statuses.get(0)).toBe('ready')
})

test('a change of the worker keeps the count of bad probes in a row', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { failureThreshold: 2 }, 1))
  await pass(0)
  checks.watch(worker(0, { failureThreshold: 2 }, 2))
  await pass(0)
  expect(statuses.get(0)).toBe('not_ready')
})

test('a status that somebody else has set begins the counts anew', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 2 }))
  await pass(4_000)
  expect(statuses.get(0)).toBe('not_ready')
  statuses.set(0, 'ready')
  await pass(1_000)
  expect(statuses.get(0)).toBe('ready')
  await pass(1_000)
  expect(statuses.get(0)).toBe('not_ready')
})

test('a draining worker is not probed', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0, { intervalSecs: 1 }))
  await pass(0)
  statuses.set(0, 'draining')
  await pass(1_000)
  const seen = probes.length
  await pass(60_000)
  expect(probes.length).toBe(seen)
  expect(statuses.get(0)).toBe('draining')
})

test('at most 128 probes run at once', async () => {
  pending = []
  for (let slot = 0; slot < 200; slot++) {
    statuses.set(slot, 'ready')
    checks.watch(worker(slot))
  }
  await pass(0)
  expect(probes.length).toBe(128)
  for (const resolve of pending.splice(0)) resolve()
  await pass(0)
  expect(probes.length).toBe(200)
})

test('a probe that the gateway had no means to send says nothing of the worker, and is made again', async () => {
  statuses.set(0, 'ready')
  isUp = undefined
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 1 }))
  await pass(5_000)
  expect(statuses.get(0)).toBe('ready')
  expect([probes.length, new Set(results)]).toEqual([6, new Set(['regular skipped'])])
  isUp = false
  await pass(1_000)
  expect(statuses.get(0)).toBe('not_ready')
})
