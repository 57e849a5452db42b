import { expect, test } from 'vitest'
import type { WorkerReply } from '#kernel'
import { UpstreamFailure } from '#kernel'
import { LoadSources } from './load-sources.ts'

const target = { url: 'http://w:1', apiKey: null }

function reply(status: number, body: unknown = {}): WorkerReply {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const json = () => JSON.parse(bytes.toString())
  return { status, headers: [], body: bytes, header: () => undefined, clientHeaders: () => [], json }
}

function open(answer: (path: string) => WorkerReply) {
  const asked: string[] = []
  const sources = new LoadSources(async (_worker, { path }) => {
    asked.push(path.split('?')[0])
    return answer(path)
  })
  return { sources, asked }
}

test('a route that a worker lacks is asked ever more seldom', async () => {
  const { sources, asked } = open(() => reply(404))
  for (let second = 0; second < 3_600; second += 10) {
    expect(await sources.read(target, 'sglang', second * 1_000)).toBeNull()
  }
  const count = (path: string) => asked.filter((one) => one === path).length
  expect(count('/v1/loads')).toBeLessThan(12)
  expect(count('/v1/loads')).toBeGreaterThan(5)
  expect(count('/metrics')).toBe(count('/v1/loads'))
})

test.each([
  ['vllm', ['/metrics']],
  ['llamacpp', ['/metrics']],
  ['sglang', ['/v1/loads', '/metrics']],
  ['external', []],
])('%s is asked for %j', async (runtime, paths) => {
  const { sources, asked } = open((path) =>
    path === '/metrics'
      ? reply(200, 'vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.25\n')
      : reply(404),
  )
  const report = await sources.read(target, runtime, 0)
  expect(asked).toEqual(paths)
  expect(report?.ranks[0]?.kvUsage).toBe(paths.length === 0 ? undefined : 0.25)
})

test.each(['__proto__', 'constructor', 'toString'])(
  'nobody is asked for an engine called %s',
  async (runtime) => {
    const { sources, asked } = open(() => reply(200))
    expect(await sources.read(target, runtime, 0)).toBeNull()
    expect(asked).toEqual([])
  },
)

test('an engine that is not to be reached is not asked another way, and nothing is remembered of it', async () => {
  const { sources, asked } = open(() => {
    throw new UpstreamFailure('connect', 'refused', false)
  })
  expect(await sources.read(target, 'sglang', 0)).toBeNull()
  expect(await sources.read(target, 'sglang', 1)).toBeNull()
  expect(asked).toEqual(['/v1/loads', '/v1/loads'])
})
