/** gRPC workers in load balancing: breakers, ranks, configured model names, KV events. */
import { expect, test } from 'vitest'
import type { KvStep } from '../support/scripted-engine.ts'
import { openGrpcFleet, until } from './grpc-fleet.ts'

const UNIMPLEMENTED = 12
const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

interface Worker {
  readonly url: string
  readonly models: readonly { readonly id: string }[]
  readonly dp_rank?: number
  readonly dp_size?: number
  readonly breaker?: string
  readonly engine?: { readonly running: number }
}
const workersOf = async (get: (path: string) => Promise<Response>) =>
  ((await (await get('/workers')).json()) as { workers: Worker[] }).workers

test('the breaker opens after failureThreshold failures and the engine is skipped; then probes pass', async () => {
  const { engines, get, post } = await openGrpcFleet({
    engines: [{}, {}],
    kernel: {
      policy: 'round_robin',
      retry: { maxAttempts: 1 },
      breaker: { failureThreshold: 2, successThreshold: 2, openMs: 3_000 },
    },
  })
  const [bad, good] = engines
  bad.script = () => [{ status: 13, details: 'out of memory' }]
  good.answer([[5]])
  const send = async () => {
    const reply = await post(CHAT, ask)
    await reply.text()
    return reply.status
  }
  const breaker = async () => (await workersOf(get)).find(({ url }) => url === bad.url)?.breaker
  const first = [await send(), await send(), await send(), await send()]
  expect(first.toSorted()).toEqual([200, 200, 500, 500])
  expect(await breaker()).toBe('open')
  for (let nth = 0; nth < 6; nth++) expect(await send()).toBe(200)
  expect(bad.calls).toHaveLength(2)

  bad.answer([[5]])
  await until(async () => {
    expect(await send()).toBe(200)
    return bad.calls.length >= 4
  })
  expect(await breaker()).toBe('closed')
  const before = bad.calls.length
  for (let nth = 0; nth < 4; nth++) expect(await send()).toBe(200)
  expect(bad.calls.length - before).toBe(2)
})

test('an engine that reports no model serves the configured one', async () => {
  const { engine, get, post } = await openGrpcFleet({
    engines: [{ hidesModel: true, spec: { models: [{ id: 'test-model' }] } }],
  })
  engine.answer([[5]])
  const [worker] = await workersOf(get)
  expect(worker.models.map(({ id }) => id)).toEqual(['test-model'])
  expect((await post(CHAT, ask)).status).toBe(200)
})

test.each(['vllm', 'sglang', 'tokenspeed'] as const)(
  '%s with four ranks is four workers, and each request has the rank of its worker',
  async (runtime) => {
    const engines = [{ runtime, serverInfo: INFO_OF_RANKS[runtime] }]
    const { engine, get, post } = await openGrpcFleet({
      engines,
      ready: 4,
      kernel: { policy: 'round_robin' },
      workers: { dpAware: true },
    })
    engine.answer([[5]])
    const workers = await workersOf(get)
    expect(workers.map(({ url, dp_rank, dp_size }) => [url, dp_rank, dp_size]).toSorted()).toEqual(
      [0, 1, 2, 3].map((rank) => [`${engine.url}@${rank}`, rank, 4]),
    )
    for (let nth = 0; nth < 8; nth++) expect((await post(CHAT, ask)).status).toBe(200)
    const ranks = engine.calls.map(({ request }) => request.dataParallelRank)
    expect(ranks.toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3])

    const plain = await openGrpcFleet({ engines })
    plain.engine.answer([[5]])
    expect((await plain.post(CHAT, ask)).status).toBe(200)
    expect(plain.engine.calls[0].request.dataParallelRank).toBeUndefined()
  },
)

test('an engine that reports more ranks than the limit adds no worker', async () => {
  const serverInfo = { serverArgs: { dp_size: 1_025 } }
  const { get } = await openGrpcFleet({
    engines: [
      { runtime: 'sglang', serverInfo },
      { runtime: 'sglang', serverInfo: INFO_OF_RANKS.sglang },
    ],
    ready: 4,
    workers: { dpAware: true },
  })
  const workers = await workersOf(get)
  expect(workers.filter(({ dp_size }) => dp_size !== undefined)).toHaveLength(4)
})

const INFO_OF_RANKS = {
  vllm: { dataParallelSize: 4 },
  sglang: { serverArgs: { dp_size: 4 } },
  tokenspeed: { serverArgs: { dp_size: 4 } },
}

const BLOCK = 4
/** The KV event in which an engine reports one stored block. */
function stored(sequence: number, ids: readonly number[], from: number): KvStep {
  const block = { blockHash: BigInt(from + 1), tokenIds: ids.slice(from, from + BLOCK), blockSize: BLOCK }
  const parentBlockHash = from === 0 ? undefined : BigInt(from - BLOCK + 1)
  return { sequenceNumber: BigInt(sequence), events: [{ stored: { blocks: [block], parentBlockHash } }] }
}

test.each([0, 1])(
  'KV events route requests to the engine that holds the prefix; after a gap the subscription resumes at the last sequence number (%i)',
  async (place) => {
    const prompt = 'The quick brown fox jumps over the lazy dog and runs into the dark wood.'
    const known = Promise.withResolvers<readonly number[]>()
    const froms: bigint[] = []
    const publishing = {
      async kvEvents(from: bigint, nth: number) {
        froms.push(from)
        const ids = await known.promise
        const batches = [1, 2, 3, 4].map((number) => stored(number, ids, (number - 1) * BLOCK))
        return nth === 1 ? [batches[0], batches[3]] : batches
      },
    }
    const unsupporting = { kvEvents: async () => [{ status: UNIMPLEMENTED }] }
    const { engines, gateway, ids, post } = await openGrpcFleet({
      kernel: { policy: 'cache_aware' },
      engines: place === 0 ? [publishing, unsupporting] : [unsupporting, publishing],
    })
    const failures = async (reason: string) => {
      const page = await (await fetch(gateway.metricsUrl as string)).text()
      return page
        .split('\n')
        .filter((line) => line.startsWith('weir_kv_event_subscription_failures_total'))
        .filter((line) => line.includes(`reason="${reason}"`))
        .map((line) => Number(line.slice(line.lastIndexOf(' '))))
        .reduce((sum, count) => sum + count, 0)
    }
    known.resolve((await ids(prompt)).slice(0, 4 * BLOCK))
    await until(async () => (await failures('gap')) === 1)
    await until(() => froms.length === 2)
    expect(froms).toEqual([0n, 1n])
    for (const engine of engines) engine.answer([[5]])
    const reply = await post('/v1/completions', { model: 'test-model', prompt, max_tokens: 2 })
    expect(reply.status).toBe(200)
    expect(engines.map(({ calls }) => calls.length)).toEqual(place === 0 ? [1, 0] : [0, 1])
    expect(await failures('unsupported')).toBe(1)
    expect(engines[1 - place].kvRequests).toHaveLength(1)
  },
)

test.each(['trtllm', 'sglang'] as const)(
  '%s: a load in the KV events is the load of the worker',
  async (runtime) => {
    const load = {
      runningRequests: 3,
      waitingRequests: 2,
      waitingUncachedTokens: 70,
      tokenUsage: 0.25,
      loadOnly: true,
    }
    const { get } = await openGrpcFleet({
      kernel: { policy: 'cache_aware' },
      // An engine that also answers polls says something else.
      engines: [
        {
          runtime,
          ...(runtime === 'sglang' && { loads: [{ numRunningReqs: 99 }] }),
          kvEvents: async () => [
            { sequenceNumber: 0n, load },
            { sequenceNumber: 0n, load: { ...load, runningRequests: 4 } },
          ],
        },
      ],
      workers: { loadMonitorIntervalSecs: 1, engineMetrics: true },
    })
    const seen: unknown[] = []
    await until(async () => {
      const [{ engine }] = await workersOf(get)
      if (engine?.running === 3) seen.push(engine)
      return seen.length > 0
    })
    expect(seen[0]).toMatchObject({ running: 3, waiting: 2, kv_usage: 0.25 })
  },
)
