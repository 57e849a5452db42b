import { expect, test } from 'vitest'
import type { WorkerControl, WorkerControls } from '#kernel'
import { readPrometheusText } from '#shared'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { EngineMetricsPage, runInSlices, scrapeTargets, scrapeWorkers } from './engine-metrics.ts'
import { mergeMetrics } from './merge-metrics.ts'

const workers = [workerEntry({ slot: 0, url: 'http://a:1', connectionMode: 'http' })]

test('concurrent requests share one scrape, later ones start a new one', async () => {
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

test('a failed scrape is not reused', async () => {
  const answers = [null, 'up 1\n']
  const control: Pick<WorkerControl, 'metricsText'> = { metricsText: async () => answers.shift() ?? null }
  const controls = { controlOf: () => control as WorkerControl }
  const page = new EngineMetricsPage({ timeoutMs: 5_000, maxConcurrent: 2 })
  const both = [page.read(controls, workers), page.read(controls, workers)]
  for (const reading of both) await expect(reading).rejects.toMatchObject({ code: 'no_engine_metrics' })
  expect(await page.read(controls, workers)).toContain('up{')
})

const entry = (url: string, connectionMode = 'http') => workerEntry({ slot: 0, url, connectionMode })

/** HTTP workers return the given text; others have no metrics. */
function upstreamOf(
  metricsText: NonNullable<WorkerControl['metricsText']> = async () => null,
): Pick<WorkerControls, 'controlOf'> {
  return { controlOf: (mode) => (mode === 'http' ? ({ metricsText } as WorkerControl) : null) }
}

test('each base URL of an HTTP worker is scraped once', () => {
  const targets = scrapeTargets(upstreamOf(), [
    entry('http://a:1'),
    entry('http://a:1/'),
    entry('grpc://b:1', 'grpc'),
    entry('http://c:1'),
  ])
  expect(targets.map(({ url }) => url)).toEqual(['http://a:1', 'http://c:1'])
})

test('data-parallel ranks share their engine', () => {
  const ranks = [0, 1].map((rank) => ({
    ...entry(`http://a:1@${rank}`),
    dataParallel: { baseUrl: 'http://a:1', rank, size: 2 },
  }))
  expect(scrapeTargets(upstreamOf(), ranks).map(({ url }) => url)).toEqual(['http://a:1'])
})

test('workers that fail, have no metrics or return invalid text are omitted', async () => {
  const upstream = upstreamOf(async ({ url }) => {
    if (url === 'http://dead:1') throw new Error('refused')
    if (url === 'http://none:1') return null
    if (url === 'http://html:1') return '<html>'
    if (url === 'http://empty:1') return ''
    return 'up 1\n'
  })
  const urls = ['dead', 'a', 'none', 'html', 'empty', 'b'].map((name) => `http://${name}:1`)
  const targets = scrapeTargets(
    upstream,
    urls.map((url) => entry(url)),
  )
  const answers = await scrapeWorkers(targets, { timeoutMs: 5_000, maxConcurrent: 2 })
  expect(answers.map(({ url }) => url)).toEqual(['http://a:1', 'http://b:1'])
})

const lines = (count: number, line: (number: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at))

test.each([
  ['more samples than engines have', lines(50_001, () => 'a 1')],
  ['a different label for each sample', lines(65, (at) => `a{l${at}="1"} 1`)],
  ['more labels than engines have', [`a{${lines(65, (at) => `l${at}="1"`).join()}} 1`]],
  ['many samples that would all get many labels', lines(20_000, (at) => `a{l${at % 30}="1"} 1`)],
])('a worker that returns %s is omitted', async (_what, page) => {
  const upstream = upstreamOf(async ({ url }) => (url === 'http://wide:1' ? page.join('\n') : 'up 1\n'))
  const targets = scrapeTargets(upstream, [entry('http://wide:1'), entry('http://a:1')])
  const answers = await scrapeWorkers(targets, { timeoutMs: 5_000, maxConcurrent: 2 })
  expect(answers.map(({ url }) => url)).toEqual(['http://a:1'])
})

test('concurrent scrapes are limited, each with its timeout', async () => {
  let open = 0
  let most = 0
  const timeouts = new Set<number>()
  const upstream = upstreamOf(async (_target, timeoutMs) => {
    timeouts.add(timeoutMs)
    open += 1
    most = Math.max(most, open)
    await new Promise((resolve) => setImmediate(resolve))
    open -= 1
    return 'up 1\n'
  })
  const workers = Array.from({ length: 20 }, (_, index) => entry(`http://w${index}:1`))
  const answers = await scrapeWorkers(scrapeTargets(upstream, workers), {
    timeoutMs: 5_000,
    maxConcurrent: 3,
  })
  expect(answers).toHaveLength(20)
  expect(most).toBe(3)
  expect([...timeouts]).toEqual([5_000])
})

/** Number of event loop turns during the work. */
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

test('a long page is parsed and merged in slices of the event loop', async () => {
  const text = 'vllm:lat_bucket{le="0.1",model="m"} 1\n'.repeat(50_000)
  const families = await runInSlices(readPrometheusText(text))
  expect(families[0].samples).toHaveLength(50_000)
  expect(await turnsOf(() => runInSlices(readPrometheusText(text)))).toBeGreaterThan(2)
  expect(await turnsOf(() => runInSlices(mergeMetrics([{ url: 'u', families }])))).toBeGreaterThan(2)
})

test('an error in a later slice is thrown', async () => {
  const work = runInSlices(readPrometheusText(`${'a 1\n'.repeat(20_000)}<html>`))
  await expect(work).rejects.toThrow(/line 20001/)
})
