import { expect, test } from 'vitest'
import { readPrometheusText } from '#shared'
import { inTurns } from './in-turns.ts'
import { mergeMetrics } from './merge-metrics.ts'

/** Turns that others on the thread have meanwhile. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}

test('a long page is read and merged in turns with whatever else the thread has to do', async () => {
  const text = 'vllm:lat_bucket{le="0.1",model="m"} 1\n'.repeat(50_000)
  const families = await inTurns(readPrometheusText(text))
  expect(families[0].samples).toHaveLength(50_000)
  expect(await turnsOf(() => inTurns(readPrometheusText(text)))).toBeGreaterThan(2)
  expect(await turnsOf(() => inTurns(mergeMetrics([{ url: 'u', families }])))).toBeGreaterThan(2)
})

test('what fails in a later turn fails', async () => {
  const work = inTurns(readPrometheusText(`${'a 1\n'.repeat(20_000)}<html>`))
  await expect(work).rejects.toThrow(/line 20001/)
})
