import { expect, test } from 'vitest'
import type { Upstream, WorkerCall, WorkerEntry, WorkerReply } from '#kernel'
import { scrapeTargets, scrapeWorkers } from './scrape.ts'

const entry = (url: string, connectionMode = 'http') =>
  ({ url, connectionMode, apiKey: null }) as unknown as WorkerEntry

function upstreamOf(answer: (url: string, call: WorkerCall) => Promise<[number, string]>): Upstream {
  return {
    call: async (worker: WorkerEntry, call: WorkerCall) => {
      const [status, text] = await answer(worker.url, call)
      return { status, body: Buffer.from(text) } as WorkerReply
    },
  } as unknown as Upstream
}

test('§4.8 each base URL of an HTTP worker is scraped once', () => {
  const targets = scrapeTargets([
    entry('http://a:1'),
    entry('http://a:1/'),
    entry('grpc://b:1', 'grpc'),
    entry('http://c:1'),
  ])
  expect(targets.map(({ url }) => url)).toEqual(['http://a:1', 'http://c:1'])
})

test('§4.8 data-parallel ranks share their engine', () => {
  const ranks = [0, 1].map((rank) => ({
    ...entry(`http://a:1@${rank}`),
    dataParallel: { baseUrl: 'http://a:1', rank, size: 2 },
  }))
  expect(scrapeTargets(ranks).map(({ url }) => url)).toEqual(['http://a:1'])
})

test('§4.8 workers that fail, answer with an error or speak gibberish are left out', async () => {
  const upstream = upstreamOf(async (url) => {
    if (url === 'http://dead:1') throw new Error('refused')
    if (url === 'http://err:1') return [500, 'up 1\n']
    if (url === 'http://html:1') return [200, '<html>']
    if (url === 'http://empty:1') return [200, '']
    return [200, 'up 1\n']
  })
  const urls = [
    'http://dead:1',
    'http://a:1',
    'http://err:1',
    'http://html:1',
    'http://empty:1',
    'http://b:1',
  ]
  const answers = await scrapeWorkers(upstream, scrapeTargets(urls.map((url) => entry(url))), {
    timeoutMs: 5_000,
    maxConcurrent: 2,
  })
  expect(answers.map(({ url }) => url)).toEqual(['http://a:1', 'http://b:1'])
})

test('§4.8 no more workers are asked at once than configured, each with its time-out', async () => {
  let open = 0
  let most = 0
  const timeouts = new Set<number>()
  const upstream = upstreamOf(async (_url, call) => {
    timeouts.add(call.timeoutMs)
    open += 1
    most = Math.max(most, open)
    await new Promise((resolve) => setImmediate(resolve))
    open -= 1
    return [200, 'up 1\n']
  })
  const targets = Array.from({ length: 20 }, (_, index) => entry(`http://w${index}:1`))
  const answers = await scrapeWorkers(upstream, targets, { timeoutMs: 5_000, maxConcurrent: 3 })
  expect(answers).toHaveLength(20)
  expect(most).toBe(3)
  expect([...timeouts]).toEqual([5_000])
})
