import { expect, test } from 'vitest'
import type { WorkerControl, WorkerControls } from '#kernel'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { scrapeTargets, scrapeWorkers } from './scrape.ts'

const entry = (url: string, connectionMode = 'http') => workerEntry({ slot: 0, url, connectionMode })

/** HTTP workers have this to say; others have no metrics. */
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

test('workers that fail, have no metrics or speak gibberish are left out', async () => {
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
  ['a label of its own for each sample', lines(65, (at) => `a{l${at}="1"} 1`)],
  ['more labels than engines have', [`a{${lines(65, (at) => `l${at}="1"`).join()}} 1`]],
  ['many samples that would all get many labels', lines(20_000, (at) => `a{l${at % 30}="1"} 1`)],
])('a worker that says %s is left out', async (_what, page) => {
  const upstream = upstreamOf(async ({ url }) => (url === 'http://wide:1' ? page.join('\n') : 'up 1\n'))
  const targets = scrapeTargets(upstream, [entry('http://wide:1'), entry('http://a:1')])
  const answers = await scrapeWorkers(targets, { timeoutMs: 5_000, maxConcurrent: 2 })
  expect(answers.map(({ url }) => url)).toEqual(['http://a:1'])
})

test('no more workers are asked at once than configured, each with its time-out', async () => {
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
