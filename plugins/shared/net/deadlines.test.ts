import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type DeadlineKind, Deadlines, TimedExchange } from './deadlines.ts'

class Timed extends TimedExchange {
  readonly fired: DeadlineKind[] = []
  onFire: () => void = () => {}
  readonly deadlines: Deadlines

  constructor(deadlines: Deadlines, requestMs: number) {
    super()
    this.deadlines = deadlines
    deadlines.watch(this, requestMs)
  }
  onDeadline(kind: DeadlineKind): void {
    this.fired.push(kind)
    this.deadlines.unwatch(this)
    this.onFire()
  }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('each limit fires once, never early and at most two ticks late', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 0, max: 500 }), (limitMs, startMs) => {
      const deadlines = new Deadlines()
      const witness = new Timed(deadlines, 0)
      vi.advanceTimersByTime(startMs)
      const timed = new Timed(deadlines, 0)
      deadlines.enterPhase(timed, 'idle_timeout', limitMs)
      vi.advanceTimersByTime(limitMs - 1)
      expect(timed.fired).toEqual([])
      vi.advanceTimersByTime(201)
      expect(timed.fired).toEqual(['idle_timeout'])
      vi.advanceTimersByTime(5000)
      expect([timed.fired.length, witness.fired.length]).toEqual([1, 0])
      deadlines.unwatch(witness)
    }),
    { numRuns: 50 },
  )
})

test('activity and a new phase restart the phase limit, not the request limit', () => {
  const deadlines = new Deadlines()
  const timed = new Timed(deadlines, 3000)
  deadlines.enterPhase(timed, 'first_byte_timeout', 500)
  for (let second = 0; second < 7; second++) {
    vi.advanceTimersByTime(400)
    timed.phaseSinceMs = deadlines.stampMs
  }
  expect(timed.fired).toEqual([])
  vi.advanceTimersByTime(400)
  expect(timed.fired).toEqual(['request_timeout'])
})

test('a paused exchange has only its connect and request limits', () => {
  const deadlines = new Deadlines()
  const connecting = new Timed(deadlines, 0)
  const waiting = new Timed(deadlines, 5000)
  deadlines.enterPhase(connecting, 'connect', 300)
  deadlines.enterPhase(waiting, 'first_byte_timeout', 300)
  connecting.isResting = true
  waiting.isResting = true
  vi.advanceTimersByTime(4000)
  expect([connecting.fired, waiting.fired]).toEqual([['connect'], []])
  vi.advanceTimersByTime(1500)
  expect(waiting.fired).toEqual(['request_timeout'])
})

test('a limit of 0 never fires', () => {
  const deadlines = new Deadlines()
  const timed = new Timed(deadlines, 0)
  deadlines.enterPhase(timed, 'idle_timeout', 0)
  vi.advanceTimersByTime(10_000_000)
  expect(timed.fired).toEqual([])
})

test('the interval runs only while exchanges are watched', () => {
  const deadlines = new Deadlines()
  expect(vi.getTimerCount()).toBe(0)
  const timed = new Timed(deadlines, 0)
  expect(vi.getTimerCount()).toBe(1)
  deadlines.unwatch(timed)
  vi.advanceTimersByTime(200)
  expect(vi.getTimerCount()).toBe(0)
})

test('time while the event loop was blocked does not count', () => {
  const deadlines = new Deadlines()
  const timed = new Timed(deadlines, 0)
  deadlines.enterPhase(timed, 'idle_timeout', 1000)
  const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000)
  vi.advanceTimersByTime(100)
  now.mockRestore()
  expect(timed.fired).toEqual([])
})

test('exchanges may be added and removed in any order, also while others fire', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2), fc.nat(20)), { maxLength: 60 }), (steps) => {
      const deadlines = new Deadlines()
      const open = new Set<Timed>()
      const join = (limitMs: number) => {
        const timed = new Timed(deadlines, 0)
        deadlines.enterPhase(timed, 'idle_timeout', limitMs)
        open.add(timed)
        timed.onFire = () => {
          expect(open.delete(timed)).toBe(true)
          const [neighbour] = open
          if (neighbour === undefined) return
          deadlines.unwatch(neighbour)
          open.delete(neighbour)
        }
      }
      for (const [action, value] of steps) {
        const chosen = [...open][value % Math.max(1, open.size)]
        if (action === 0) join(value * 50)
        else if (action === 1) vi.advanceTimersByTime(value * 20)
        else if (chosen !== undefined) {
          deadlines.unwatch(chosen)
          open.delete(chosen)
        }
      }
      const seen = new Set<unknown>()
      for (let at = deadlines.anyWatched; at !== null; at = at.nextOpen) seen.add(at)
      expect(seen).toEqual(open)
      for (const timed of open) deadlines.unwatch(timed)
      expect(deadlines.anyWatched).toBeNull()
      vi.advanceTimersByTime(200)
    }),
  )
})
