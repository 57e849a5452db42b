/** The shared counters: in-flight counts of all threads, and columns that only control may write. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WORKER_STATUS_CODE, type WorkerStatus } from '../contracts/worker.ts'
import { Counters, createCounters } from './counters.ts'

function openAll(maxWorkers: number, threadCount: number): Counters[] {
  const buffer = createCounters(maxWorkers, threadCount)
  return Array.from({ length: threadCount + 1 }, (_, thread) => new Counters(buffer, thread))
}

describe('in flight', () => {
  test('is the sum over all threads', () => {
    const [control, first, second] = openAll(8, 2)
    control.increment(3)
    first.increment(3)
    first.increment(3)
    second.increment(3)
    second.increment(4)
    expect(control.inFlight(3)).toBe(4)
    expect(second.inFlight(4)).toBe(1)
    first.decrement(3)
    expect(control.inFlight(3)).toBe(3)
    expect(control.inFlight(2)).toBe(0)
  })

  test('cannot become negative, and stays correct after the attempt', () => {
    const [control, first] = openAll(4, 1)
    control.increment(1)
    expect(() => first.decrement(1)).toThrow(RangeError)
    expect(control.inFlight(1)).toBe(1)
  })

  test('loses only the part of a crashed thread when its column is zeroed', () => {
    const [control, first, second] = openAll(20, 2)
    for (let slot = 0; slot < 20; slot++) {
      first.increment(slot)
      second.increment(slot)
    }
    control.zeroColumn(1)
    for (let slot = 0; slot < 20; slot++) expect(control.inFlight(slot)).toBe(1)
    expect(() => first.decrement(0)).toThrow(RangeError)
    second.decrement(0)
    expect(control.isIdle(0)).toBe(true)
    expect(control.isIdle(1)).toBe(false)
  })

  test('of other gateways is part of the load, and not of the own count', () => {
    const [control, data] = openAll(4, 1)
    data.increment(1)
    control.setElsewhere(1, 5)
    control.setElsewhere(2, 3)
    expect([data.load(1), data.inFlight(1), data.elsewhere(1)]).toEqual([6, 1, 5])
    expect([...data.loadBySlot]).toEqual([0, 6, 3, 0])
    expect([control.isIdle(1), control.isIdle(2)]).toEqual([false, true])
    control.zeroColumn(1)
    expect([control.load(1), control.inFlight(1)]).toEqual([5, 0])
    control.setElsewhere(1, 0)
    expect(control.load(1)).toBe(0)
    expect(() => data.setElsewhere(1, 1)).toThrow('only control')
  })

  test('equals a model of plain numbers, for any order of calls on any thread', () => {
    const threadCount = 3
    const maxWorkers = 5
    const call = fc.record({
      thread: fc.integer({ min: 0, max: threadCount }),
      slot: fc.integer({ min: 0, max: maxWorkers - 1 }),
      kind: fc.constantFrom('increment', 'increment', 'decrement', 'zero'),
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 200 }), (calls) => {
        const threads = openAll(maxWorkers, threadCount)
        const model = threads.map(() => new Array<number>(maxWorkers).fill(0))
        for (const { thread, slot, kind } of calls) {
          if (kind === 'zero') {
            threads[0].zeroColumn(thread)
            model[thread].fill(0)
          } else if (kind === 'increment') {
            threads[thread].increment(slot)
            model[thread][slot]++
          } else if (model[thread][slot] > 0) {
            threads[thread].decrement(slot)
            model[thread][slot]--
          } else expect(() => threads[thread].decrement(slot)).toThrow(RangeError)
        }
        for (let slot = 0; slot < maxWorkers; slot++) {
          const sum = model.reduce((total, column) => total + column[slot], 0)
          for (const counters of threads) expect(counters.inFlight(slot)).toBe(sum)
          expect(threads[0].isIdle(slot)).toBe(sum === 0)
        }
      }),
    )
  })
})

describe('status', () => {
  test('set by control is visible on every thread, and nothing else changes', () => {
    const [control, first] = openAll(16, 1)
    first.increment(5)
    for (const status of Object.keys(WORKER_STATUS_CODE) as WorkerStatus[]) {
      control.setStatus(5, status)
      expect(first.status(5)).toBe(status)
      expect(first.isReady(5)).toBe(status === 'ready')
    }
    expect(first.status(4)).toBe('pending')
    expect(first.status(6)).toBe('pending')
    expect(control.inFlight(5)).toBe(1)
  })

  test('can only be set by control', () => {
    const [, first] = openAll(16, 1)
    expect(() => first.setStatus(0, 'ready')).toThrow('only control')
    expect(() => first.zeroColumn(0)).toThrow('only control')
  })
})

test('slots and threads outside the buffer are rejected', () => {
  const buffer = createCounters(4, 2)
  expect(() => new Counters(buffer, 3)).toThrow(RangeError)
  const control = new Counters(buffer, 0)
  expect(() => control.status(4)).toThrow(RangeError)
  expect(() => control.setStatus(-1, 'ready')).toThrow(RangeError)
  expect(() => control.zeroColumn(3)).toThrow(RangeError)
})
