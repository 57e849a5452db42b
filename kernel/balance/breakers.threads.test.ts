/** One breaker under real threads that acquire it concurrently. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { defaultBreaker } from '../../test/support/balance-parts.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { Breakers } from './breakers.ts'
import { CounterLayout, SharedColumn, ThreadColumn } from './counter-layout.ts'
import { Counters, createCounters } from './counters.ts'

const THREADS = 3

test.each([1, 2])('at most %i probes run at a time, and every probe permit is released', async (limit) => {
  const config = { ...defaultBreaker, failureThreshold: 2, openMs: 1, halfOpenProbes: limit }
  const buffer = createCounters(1, THREADS)
  const probes = new SharedArrayBuffer(16)
  const threads = Array.from({ length: THREADS }, (_, index) => {
    const workerData = { buffer, probes, thread: index + 1, rounds: 300_000, config }
    return new Worker(new URL('../../test/fixtures/threads/breaker-thread.ts', import.meta.url), {
      workerData,
    })
  })
  const entered = await Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]))
  for (const count of entered) expect(count).toBeGreaterThan(0)
  const [running, most] = new Int32Array(probes)
  expect(running).toBe(0)
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(limit)
  const layout = new CounterLayout(buffer)
  expect(layout.cells[layout.shared(SharedColumn.probesTotal)]).toBe(0)
  for (let thread = 1; thread <= THREADS; thread++) {
    expect(layout.cells[layout.ofThread(thread, ThreadColumn.probes)]).toBe(0)
  }
  const control = new Breakers(new Counters(buffer, 0), config, Date.now)
  expect(['closed', 'open', 'half_open']).toContain(control.state(workerEntry({ slot: 0 })))
})
