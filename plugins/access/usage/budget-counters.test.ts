/** Counters of budgets: repeated batches count once, outages delay nothing for long. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { CounterChange } from '#kernel'
import { BudgetCounters } from './budget-counters.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Counters as the engine keeps them, and an engine that fails before or after it has counted, or does not answer. */
class Engine {
  readonly totals = new Map<string, number>()
  readonly #sequences = new Map<string, number>()
  fault: 'none' | 'before' | 'after' | 'silent' = 'none'

  readonly count = async (writer: string, sequence: number, changes: readonly CounterChange[]) => {
    const { fault } = this
    if (fault === 'before') throw new Error('away')
    if (fault === 'silent') return new Promise<never>(() => undefined)
    const isNew = sequence > (this.#sequences.get(writer) ?? 0)
    this.#sequences.set(writer, sequence)
    const totals = changes.map(({ counter, add }) => {
      const total = (this.totals.get(counter) ?? 0) + (isNew ? add : 0)
      this.totals.set(counter, total)
      return total
    })
    if (fault === 'after') throw new Error('timed out')
    return totals
  }
}

const END = Date.UTC(2100, 0)
const one = { tokens: 1, costNano: 10 }

describe('counters of budgets', () => {
  test('sum what all gateways have used, at the next read', async () => {
    const engine = new Engine()
    const [first, second] = [new BudgetCounters(engine.count), new BudgetCounters(engine.count)]
    first.add('a', { tokens: 5, costNano: 50 }, END)
    second.add('a', one, END)
    second.add('b', one, END)
    await vi.advanceTimersByTimeAsync(0)
    expect(await first.read(['a', 'b', 'c'])).toEqual([
      { tokens: 6, costNano: 60 },
      one,
      { tokens: 0, costNano: 0 },
    ])
  })

  test('every use counts once, whatever fails', async () => {
    const step = fc.constantFrom('none', 'before', 'after', 'use', 'use', 'pass')
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const engine = new Engine()
        const counters = new BudgetCounters(engine.count)
        let used = 0
        for (const what of steps) {
          if (what === 'use') {
            counters.add('a', one, END)
            used++
          } else if (what === 'pass') {
            await vi.advanceTimersByTimeAsync(1_000)
          } else {
            engine.fault = what
          }
          const [{ tokens }] = await counters.read(['a'])
          expect(tokens).toBe(used)
        }
        engine.fault = 'none'
        await counters.stop()
        const total = [...engine.totals].find(([name]) => name.endsWith(':tokens'))?.[1]
        expect(total ?? 0).toBe(used)
      }),
      { numRuns: 200 },
    )
  })

  test('a silent engine delays a read by 250 ms, and the last known totals count', async () => {
    const engine = new Engine()
    const counters = new BudgetCounters(engine.count)
    counters.add('a', one, END)
    await counters.read(['a'])
    engine.fault = 'silent'
    counters.add('a', one, END)
    const read = counters.read(['a'])
    await vi.advanceTimersByTimeAsync(250)
    expect(await read).toEqual([{ tokens: 2, costNano: 20 }])
  })
})
