import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HealthView, NO_PROBES, observeProbe } from './health-state.ts'

const thresholds = { successThreshold: 2, failureThreshold: 3 }

function run(from: HealthView['status'], probes: readonly boolean[], given = thresholds): HealthView[] {
  const views: HealthView[] = [{ status: from, counts: NO_PROBES }]
  for (const isGood of probes) views.push(observeProbe(views[views.length - 1], isGood, given))
  return views
}
const last = (from: HealthView['status'], probes: readonly boolean[]) => run(from, probes).at(-1)!.status

describe('thresholds', () => {
  test('Worker: three bad probes in a row make a ready worker not_ready, two good ones bring it back', () => {
    expect(last('ready', [false, false])).toBe('ready')
    expect(last('ready', [false, false, true, false, false])).toBe('ready')
    expect(last('ready', [false, false, false])).toBe('not_ready')
    expect(last('not_ready', [true])).toBe('not_ready')
    expect(last('not_ready', [true, false, true])).toBe('not_ready')
    expect(last('not_ready', [true, true])).toBe('ready')
  })

  test('Worker: a pending worker becomes ready after enough good probes, failed after ten times the threshold', () => {
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

  test('Worker: three times the threshold of further bad probes makes a not_ready worker failed', () => {
    expect(last('not_ready', new Array(8).fill(false))).toBe('not_ready')
    expect(last('not_ready', new Array(9).fill(false))).toBe('failed')
    expect(last('ready', new Array(12).fill(false))).toBe('failed')
  })

  test('a failed worker comes back after as many good probes as any other', () => {
    expect(last('failed', [true, false, true])).toBe('failed')
    expect(last('failed', [false, true, true])).toBe('ready')
  })
})

describe('whatever the probes say', () => {
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

  test('only the documented transitions happen, and each one begins the counts anew', () => {
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

  test('draining is final, a failed worker can only come back, and good probes alone never take a worker down', () => {
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

  test('a change of status is earned by exactly as many equal probes in a row as its threshold says', () => {
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
