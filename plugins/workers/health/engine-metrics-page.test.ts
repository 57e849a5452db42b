import { expect, test } from 'vitest'
import type { WorkerControl } from '#kernel'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { EngineMetricsPage } from './engine-metrics-page.ts'

const workers = [workerEntry({ slot: 0, url: 'http://a:1', connectionMode: 'http' })]

test('those who ask at the same time share one answer of the workers, later ones get a new one', async () => {
  let asked = 0
  const control: Pick<WorkerControl, 'metricsText'> = {
    metricsText: async () => {
      asked += 1
      return `asked ${asked}\n`
    },
  }
  const controls = { controlOf: () => control as WorkerControl }
  const page = new EngineMetricsPage({ timeoutMs: 5_000, maxConcurrent: 2 })
  const texts = await Promise.all(Array.from({ length: 20 }, () => page.read(controls, workers)))
  expect(new Set(texts)).toEqual(new Set(['asked{worker_addr="http://a:1"} 1\n']))
  expect(await page.read(controls, workers)).toContain('} 2')
})

test('what failed for all of them is tried again for the next', async () => {
  const answers = [null, 'up 1\n']
  const control: Pick<WorkerControl, 'metricsText'> = { metricsText: async () => answers.shift() ?? null }
  const controls = { controlOf: () => control as WorkerControl }
  const page = new EngineMetricsPage({ timeoutMs: 5_000, maxConcurrent: 2 })
  const both = [page.read(controls, workers), page.read(controls, workers)]
  for (const reading of both) await expect(reading).rejects.toMatchObject({ code: 'no_engine_metrics' })
  expect(await page.read(controls, workers)).toContain('up{')
})
