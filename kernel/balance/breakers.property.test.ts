/** Random histories of a breaker on three threads, compared with a model of plain objects. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defaultBreaker } from '../../test/support/balance-parts.ts'
import { runs } from '../../test/support/thorough.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { BreakerConfig } from '../config/breaker-config.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { Breakers, REFUSED } from './breakers.ts'
import { Counters, createCounters } from './counters.ts'
import type { BreakerState } from './worker-balance.ts'

const THREADS = 3
const PROBE_LIMIT_MS = 60_000

interface Held {
  readonly thread: number
  readonly permit: number
  /** State changes of the model at the time of the pick. */
  readonly changes: number
  readonly isProbe: boolean
}

/** Reference model of one breaker. */
class Model {
  state: BreakerState = 'closed'
  run = 0
  changes = 0
  openedAtMs = 0
  probedAtMs = 0
  readonly config: BreakerConfig

  constructor(config: BreakerConfig) {
    this.config = config
  }

  isOver(nowMs: number): boolean {
    return this.state === 'open' && nowMs - this.openedAtMs >= this.config.openMs
  }

  /** @returns undefined if rejected, otherwise whether the attempt is a probe */
  enter(nowMs: number, probes: number): boolean | undefined {
    if (this.state === 'closed') return false
    if (this.isOver(nowMs)) this.change('half_open', 0)
    if (this.state === 'open') return undefined
    if (probes >= this.config.halfOpenProbes && nowMs - this.probedAtMs < PROBE_LIMIT_MS) return undefined
    this.probedAtMs = nowMs
    return true
  }

  end(isSuccess: boolean, changes: number, nowMs: number): void {
    if (changes !== this.changes || this.state === 'open') return
    if (isSuccess) this.succeed()
    else this.fail(nowMs)
  }

  private succeed(): void {
    if (this.state === 'closed') this.run = 0
    else if (++this.run >= this.config.successThreshold) this.change('closed', 0)
  }

  private fail(nowMs: number): void {
    const run = this.state === 'closed' ? this.run + 1 : 1
    if (this.state === 'closed' && run < this.config.failureThreshold) {
      this.run = run
      return
    }
    this.openedAtMs = nowMs
    this.change('open', run)
  }

  change(to: BreakerState, run: number): void {
    this.state = to
    this.run = run
    this.changes++
  }
}

/** The real breaker over three threads, next to the model. */
class Pair {
  nowMs = Date.UTC(2026, 0, 1)
  readonly worker: WorkerEntry = workerEntry({ slot: 2 })
  readonly model: Model
  readonly held: Held[] = []
  readonly counters: readonly Counters[]
  readonly threads: readonly Breakers[]
  readonly transitions: string[] = []
  modelChanges = 0

  constructor(config: BreakerConfig) {
    this.model = new Model(config)
    const buffer = createCounters(4, THREADS - 1)
    this.counters = Array.from({ length: THREADS }, (_, thread) => new Counters(buffer, thread))
    const listener = {
      onWorkers: () => {},
      onOutcome: () => {},
      onTransition: (_: WorkerEntry, from: string, to: string) => this.transitions.push(`${from} ${to}`),
    }
    this.threads = this.counters.map((view) => new Breakers(view, config, () => this.nowMs))
    for (const breakers of this.threads) breakers.watch = listener
    this.counters[0].setStatus(this.worker.slot, 'ready')
  }

  get probes(): number {
    return this.held.filter(({ isProbe }) => isProbe).length
  }

  enter(thread: number): void {
    const wasAvailable = this.threads[thread].isAvailable(this.worker)
    const expected = this.model.enter(this.nowMs, this.probes)
    const permit = this.threads[thread].acquire(this.worker)
    expect(wasAvailable).toBe(expected !== undefined)
    expect(permit !== REFUSED).toBe(expected !== undefined)
    if (expected === undefined) return
    this.held.push({ thread, permit, changes: this.model.changes, isProbe: expected })
  }

  end(at: number, outcome: 'succeeded' | 'failed' | 'none'): void {
    const [attempt] = this.held.splice(at % Math.max(this.held.length, 1), 1)
    if (attempt === undefined) return
    const breakers = this.threads[attempt.thread]
    if (outcome !== 'none') {
      if (outcome === 'succeeded') breakers.succeeded(this.worker, attempt.permit)
      else breakers.failed(this.worker, attempt.permit, 'silent')
      this.model.end(outcome === 'succeeded', attempt.changes, this.nowMs)
    }
    breakers.release(this.worker, attempt.permit)
  }

  /** The thread dies with everything it had in flight. */
  crash(thread: number): void {
    this.counters[0].zeroColumn(thread)
    for (let at = this.held.length - 1; at >= 0; at--) {
      if (this.held[at].thread === thread) this.held.splice(at, 1)
    }
  }

  /** A new worker gets the row, once nothing is in flight any more. */
  reset(): void {
    while (this.held.length > 0) this.end(0, 'none')
    this.threads[0].reset(this.worker.slot)
    this.model.change('closed', 0)
  }

  check(): void {
    const { model, worker } = this
    const state = model.isOver(this.nowMs) ? 'half_open' : model.state
    for (const breakers of this.threads) {
      expect(breakers.state(worker)).toBe(state)
      const isHalfOpen = model.state === 'half_open'
      expect(breakers.runs(worker.slot)).toEqual({
        failures: isHalfOpen ? 0 : model.run,
        successes: isHalfOpen ? model.run : 0,
      })
    }
  }
}

const thread = fc.nat({ max: THREADS - 1 })
const step = fc.oneof(
  { weight: 8, arbitrary: thread.map((on) => (pair: Pair) => pair.enter(on)) },
  {
    weight: 8,
    arbitrary: fc.tuple(fc.nat({ max: 9 }), fc.constantFrom('succeeded', 'failed', 'failed', 'none')).map(
      ([at, outcome]) =>
        (pair: Pair) =>
          pair.end(at, outcome as 'none'),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(1, 400, 999, 1_000, 30_000, 60_000).map((ms) => (pair: Pair) => {
      pair.nowMs += ms
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom(1, 2).map((on) => (pair: Pair) => pair.crash(on)) },
  { weight: 1, arbitrary: fc.constant((pair: Pair) => pair.reset()) },
)

test('any history on any thread: state, runs and admission equal those of the model, and no probe permit is lost', () => {
  const config = fc.record({
    failureThreshold: fc.integer({ min: 1, max: 3 }),
    successThreshold: fc.integer({ min: 1, max: 3 }),
    halfOpenProbes: fc.integer({ min: 1, max: 3 }),
  })
  fc.assert(
    fc.property(config, fc.array(step, { minLength: 50, maxLength: 250, size: 'max' }), (settings, steps) => {
      const pair = new Pair({ ...defaultBreaker, openMs: 1_000, ...settings })
      for (const run of steps) {
        run(pair)
        pair.check()
      }
      for (let i = 1; i < pair.transitions.length; i++) {
        // A reset is not a transition, so it may occur between two.
        const [from] = pair.transitions[i].split(' ')
        expect(['closed', pair.transitions[i - 1].split(' ')[1]]).toContain(from)
      }
      while (pair.held.length > 0) pair.end(0, 'none')
      pair.nowMs += 2_000
      const free = pair.model.state === 'closed' ? 0 : settings.halfOpenProbes
      for (let i = 0; i < free; i++) pair.enter(i % THREADS)
      expect(pair.probes).toBe(free)
    }),
    { numRuns: runs(200) },
  )
})

test('an expired breaker is no candidate while an earlier probe holds the only probe permit', () => {
  const once = { failureThreshold: 1, successThreshold: 1, halfOpenProbes: 1, openMs: 1_000 }
  const pair = new Pair({ ...defaultBreaker, ...once })
  pair.enter(0)
  pair.end(0, 'failed')
  for (const waitMs of [1_000, PROBE_LIMIT_MS]) {
    pair.nowMs += waitMs
    pair.enter(0)
  }
  pair.end(1, 'failed')
  pair.nowMs += 1_000
  pair.enter(0)
  expect(pair.held).toHaveLength(1)
})
