/** The metrics of circuit breakers, seen through snapshots. */
import { beforeEach, expect, test } from 'vitest'
import type { ValueFamily } from '../../../kernel/contracts/metric.ts'
import { ThreadMetrics } from '../../../kernel/observe/metrics.ts'
import { BreakerMetrics } from './worker-metrics.ts'

const a = { slot: 0, id: 'a', url: 'http://a' }
const b = { slot: 3, id: 'b', url: 'http://b' }
let metrics: ThreadMetrics
let breakers: BreakerMetrics

beforeEach(() => {
  metrics = new ThreadMetrics()
  breakers = new BreakerMetrics(metrics)
})

/** Series of one family, as `a,b value`. */
function series(name: string): string[] {
  const family = metrics.snapshot().find((one) => one.name === `weir_worker_cb_${name}`) as ValueFamily
  return family.series.map(({ labels, value }) => `${labels.join()} ${value}`)
}

test('outcomes and transitions count by worker', () => {
  breakers.onWorkers([a, b])
  breakers.onOutcome(a, true)
  breakers.onOutcome(a, false)
  breakers.onOutcome(b, true)
  breakers.onOutcome(b, true)
  breakers.onTransition(a, 'closed', 'open')
  breakers.onTransition(a, 'open', 'half_open')
  breakers.onTransition(a, 'half_open', 'open')
  breakers.onTransition(a, 'open', 'half_open')
  expect(series('outcomes_total')).toEqual(['http://a,success 1', 'http://a,failure 1', 'http://b,success 2'])
  expect(series('transitions_total')).toEqual([
    'http://a,closed,open 1',
    'http://a,open,half_open 2',
    'http://a,half_open,open 1',
  ])
})

test('series of a removed worker are removed, and later outcomes do not restore them', () => {
  breakers.onWorkers([a, b])
  breakers.onOutcome(a, true)
  breakers.onOutcome(b, false)
  breakers.onTransition(a, 'closed', 'open')
  breakers.onWorkers([b])
  breakers.onOutcome(a, true)
  breakers.onTransition(a, 'open', 'half_open')
  expect(series('outcomes_total')).toEqual(['http://b,failure 1'])
  expect(series('transitions_total')).toEqual([])
})

test('the next worker of a slot starts at zero, even with the same address', () => {
  breakers.onWorkers([a])
  breakers.onOutcome(a, false)
  const next = { ...a, id: 'next' }
  breakers.onWorkers([next])
  breakers.onOutcome(a, false)
  breakers.onOutcome(next, true)
  expect(series('outcomes_total')).toEqual(['http://a,success 1'])
  breakers.onWorkers([{ ...next }])
  breakers.onOutcome(next, true)
  expect(series('outcomes_total')).toEqual(['http://a,success 2'])
})

test('gauges have state and runs of the registered workers', () => {
  const source = {
    workers: [a, b],
    breakerState: (slot: number) => (slot === a.slot ? ('half_open' as const) : ('closed' as const)),
    breakerRuns: (slot: number) => ({ failures: slot, successes: slot === a.slot ? 2 : 0 }),
  }
  breakers.watch(source)
  expect(series('state')).toEqual(['http://a 2', 'http://b 0'])
  expect(series('consecutive_failures')).toEqual(['http://a 0', 'http://b 3'])
  expect(series('consecutive_successes')).toEqual(['http://a 2', 'http://b 0'])
  source.workers = [b]
  expect(series('state')).toEqual(['http://b 0'])
})
