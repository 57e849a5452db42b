import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { WorkerStatus } from '#kernel'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import { HealthChecks, type HealthView, NO_PROBES, observeProbe } from './health-checks.ts'
import { buildWorker, type Worker } from './worker.ts'
import { toWorkerSpec } from './worker-spec.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }

let statuses: Map<number, WorkerStatus>
let breaker: 'closed' | 'open'
let failedRequests: number
let refusals: number
let misnamedAnswers: number
let isUp: boolean | undefined
let probes: string[]
/** Workers whose breakers become half-open. */
let recovered: string[]
let results: string[]
let failed: string[]
let onFailed: () => void
let pending: (() => void)[] | null
let checks: HealthChecks

beforeEach(() => {
  vi.useFakeTimers()
  statuses = new Map()
  breaker = 'closed'
  failedRequests = 0
  refusals = 0
  misnamedAnswers = 0
  isUp = true
  probes = []
  recovered = []
  results = []
  failed = []
  onFailed = () => {}
  pending = null
  checks = new HealthChecks({
    balance: {
      status: (slot) => statuses.get(slot) ?? 'pending',
      setStatus: (slot, status) => void statuses.set(slot, status),
      breakerState: () => breaker,
      recovered: (entry) => void recovered.push(entry.url),
      refusals: () => refusals,
      misnamedAnswers: () => misnamedAnswers,
      breakerRuns: () => ({ failures: failedRequests, successes: 0 }),
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
  const spec = { ...toWorkerSpec({ url: `http://w${slot}:1` }), health }
  const findings = { connectionMode: 'http', runtimeType: 'vllm', models: [], labels: {} } as const
  return buildWorker(
    { id: `id-${slot}`, spec, findings, origin: 'api', rank: null },
    slot,
    revision,
    defaultConfig(),
  )
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

test('a new worker is probed immediately and then at its interval', async () => {
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

test('thresholds and interval of the worker override those of the gateway', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 1, successThreshold: 1 }))
  await pass(0)
  expect(statuses.get(0)).toBe('not_ready')
  isUp = true
  await pass(1_000)
  expect(statuses.get(0)).toBe('ready')
})

test('a dead and a recovered worker are noticed within seconds, whatever the interval', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0))
  await pass(10_000)
  isUp = false
  breaker = 'open'
  await pass(3_000)
  expect(statuses.get(0)).toBe('not_ready')
  // Far less than three times the threshold at an interval of 60 s: it has not failed.
  await pass(60_000)
  expect(statuses.get(0)).toBe('not_ready')
  expect(recovered).toEqual([])
  isUp = true
  await pass(3_000)
  expect(statuses.get(0)).toBe('ready')
  expect(recovered).toEqual(['http://w0:1'])
})

test('a breaker that opened during a short outage becomes half-open with the first successful probe', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0, { failureThreshold: 10 }))
  await pass(10_000)
  isUp = false
  breaker = 'open'
  await pass(2_000)
  isUp = true
  await pass(2_000)
  expect(recovered).toEqual(['http://w0:1'])
})

test('an open breaker of a healthy worker causes one probe', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0))
  await pass(10_000)
  expect(probes.length).toBe(1)
  breaker = 'open'
  await pass(10_000)
  expect(probes.length).toBe(2)
  expect(statuses.get(0)).toBe('ready')
})

test('a failed request causes one probe, and another once requests have succeeded again', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0))
  await pass(10_000)
  for (const expected of [2, 3]) {
    failedRequests = 1
    await pass(5_000)
    expect(probes.length).toBe(expected)
    failedRequests = 0
    await pass(2_000)
  }
})

test('a burst of rejected requests causes one probe, and single ones none', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0))
  await pass(10_000)
  refusals = 2
  await pass(5_000)
  expect(probes.length).toBe(1)
  refusals = 3
  await pass(600)
  expect(probes.length).toBe(2)
  refusals = 300
  await pass(5_000)
  expect(probes.length).toBe(2)
})

test('each report of answers for another model causes one probe', async () => {
  statuses.set(0, 'ready')
  misnamedAnswers = 7
  checks.watch(worker(0))
  await pass(10_000)
  expect(probes.length).toBe(1)
  for (const expected of [2, 3]) {
    misnamedAnswers += 1
    await pass(5_000)
    expect(probes.length).toBe(expected)
  }
})

test('a worker without health checks is never probed', async () => {
  statuses.set(0, 'ready')
  checks.watch(worker(0, { isDisabled: true }))
  await pass(600_000)
  expect(probes).toEqual([])
})

test('a failed worker is logged once, and recovers within three seconds', async () => {
  statuses.set(0, 'pending')
  isUp = false
  checks.watch(worker(0, { failureThreshold: 1 }))
  await pass(900_000)
  expect(statuses.get(0)).toBe('failed')
  await pass(60_000)
  expect(failed).toEqual(['id-0'])
  isUp = true
  await pass(3_400)
  expect(statuses.get(0)).toBe('ready')
})

test('a failed worker that was removed is no longer probed', async () => {
  statuses.set(0, 'pending')
  isUp = false
  const leaving = worker(0, { intervalSecs: 1, failureThreshold: 1 })
  onFailed = () => checks.unwatch(leaving.id)
  checks.watch(leaving)
  await pass(3_600_000)
  expect(probes.length).toBe(19)
})

test('a probe of an older revision is ignored', async () => {
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

test('a change of the worker keeps the count of consecutive failed probes', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { failureThreshold: 2 }, 1))
  await pass(0)
  checks.watch(worker(0, { failureThreshold: 2 }, 2))
  await pass(0)
  expect(statuses.get(0)).toBe('not_ready')
})

test('a status set externally resets the counters', async () => {
  statuses.set(0, 'ready')
  isUp = false
  checks.watch(worker(0, { intervalSecs: 1, failureThreshold: 2 }))
  await pass(4_000)
  expect(statuses.get(0)).toBe('not_ready')
  statuses.set(0, 'ready')
  await pass(500)
  expect(statuses.get(0)).toBe('ready')
  await pass(500)
  expect(statuses.get(0)).toBe('not_ready')
})

test('a drained worker is probed, and drained again when its engine recovers', async () => {
  statuses.set(0, 'drained')
  const one = worker(0, { intervalSecs: 1, failureThreshold: 1, successThreshold: 1 })
  checks.watch({ ...one, spec: { ...one.spec, isDrained: true } })
  await pass(5_000)
  expect([statuses.get(0), probes.length]).toEqual(['drained', 6])
  isUp = false
  await pass(1_000)
  expect(statuses.get(0)).toBe('not_ready')
  isUp = true
  await pass(1_000)
  expect(statuses.get(0)).toBe('drained')
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

test('a probe that the gateway could not send does not count and is repeated', async () => {
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

const thresholds = { successThreshold: 2, failureThreshold: 3 }

function run(from: HealthView['status'], probes: readonly boolean[], given = thresholds): HealthView[] {
  const views: HealthView[] = [{ status: from, counts: NO_PROBES }]
  for (const isGood of probes) views.push(observeProbe(views[views.length - 1], isGood, given))
  return views
}
const last = (from: HealthView['status'], probes: readonly boolean[]) => run(from, probes).at(-1)!.status

describe('thresholds', () => {
  test('three consecutive failed probes make a ready worker not_ready, two successful ones restore it', () => {
    expect(last('ready', [false, false])).toBe('ready')
    expect(last('ready', [false, false, true, false, false])).toBe('ready')
    expect(last('ready', [false, false, false])).toBe('not_ready')
    expect(last('not_ready', [true])).toBe('not_ready')
    expect(last('not_ready', [true, false, true])).toBe('not_ready')
    expect(last('not_ready', [true, true])).toBe('ready')
  })

  test('a pending worker becomes ready after enough successful probes, failed after ten times the threshold', () => {
    expect(last('pending', [true, true])).toBe('ready')
    expect(last('pending', new Array(29).fill(false))).toBe('pending')
    expect(last('pending', new Array(30).fill(false))).toBe('failed')
    expect(
      last(
        'pending',
        Array.from({ length: 30 }, (_, index) => index % 2 === 0),
      ),
    ).toBe('failed')
  })

  test('three times the threshold of further failed probes makes a not_ready worker failed', () => {
    expect(last('not_ready', new Array(8).fill(false))).toBe('not_ready')
    expect(last('not_ready', new Array(9).fill(false))).toBe('failed')
    expect(last('ready', new Array(12).fill(false))).toBe('failed')
  })

  test('a failed worker recovers after the usual number of successful probes', () => {
    expect(last('failed', [true, false, true])).toBe('failed')
    expect(last('failed', [false, true, true])).toBe('ready')
  })
})

describe('any sequence of probes', () => {
  const probes = fc.array(fc.boolean(), { maxLength: 200 })
  const limits = fc.record({
    successThreshold: fc.integer({ min: 1, max: 5 }),
    failureThreshold: fc.integer({ min: 1, max: 5 }),
  })
  const start = fc.constantFrom('pending', 'ready', 'not_ready', 'failed', 'draining' as const)
  const allowed = new Set([
    'pending>ready',
    'pending>failed',
    'ready>not_ready',
    'not_ready>ready',
    'not_ready>failed',
    'failed>ready',
  ])

  test('only the documented transitions happen, and each one resets the counters', () => {
    fc.assert(
      fc.property(start, probes, limits, (from, results, given) => {
        const views = run(from, results, given)
        for (const [index, view] of views.entries()) {
          const before = views[index - 1]
          if (before === undefined || before.status === view.status) continue
          expect(allowed).toContain(`${before.status}>${view.status}`)
          expect(view.counts).toEqual(NO_PROBES)
        }
      }),
    )
  })

  test('draining is final, a failed worker can only recover, and successful probes alone never take a worker down', () => {
    fc.assert(
      fc.property(probes, limits, (results, given) => {
        expect(
          run(
            'failed',
            results.map(() => false),
            given,
          ).every((view) => view.status === 'failed'),
        ).toBe(true)
        expect(run('draining', results, given).every((view) => view.status === 'draining')).toBe(true)
        const good = results.map(() => true)
        expect(run('ready', good, given).every((view) => view.status === 'ready')).toBe(true)
      }),
    )
  })

  test('a status changes after exactly as many equal consecutive probes as its threshold', () => {
    fc.assert(
      fc.property(probes, limits, (results, given) => {
        const views = run('ready', results, given)
        for (const [index, view] of views.entries()) {
          if (view.status === views[index - 1]?.status) continue
          if (view.status === 'not_ready')
            expect(results.slice(index - given.failureThreshold, index).every((good) => !good)).toBe(true)
          if (view.status === 'ready' && index > 0)
            expect(results.slice(index - given.successThreshold, index).every((good) => good)).toBe(true)
        }
      }),
    )
  })
})
