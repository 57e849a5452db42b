/** The control plane over gRPC: detection, labels, models, health and engine commands. */
import { expect, test } from 'vitest'
import { trtllm } from '../../plugins/workers/grpc/runtimes/trtllm.ts'
import { encodeHealthCheckResponse } from '../../proto/gen/trtllm-service.ts'
import { ENGINE_NAMES, startScriptedEngine } from '../support/scripted-engine.ts'
import { openGrpcFleet, shareGrpcFleets, until } from './grpc-fleet.ts'

type Worker = Record<string, unknown> & { labels: Record<string, string>; models: { id: string }[] }

const workersOf = async (get: (path: string) => Promise<Response>) =>
  ((await (await get('/workers')).json()) as { workers: Worker[] }).workers

const openShared = shareGrpcFleets()

test.each(ENGINE_NAMES)('%s is detected, with its labels and its model', async (runtime) => {
  const { engines, get } = await openShared({
    engines: ENGINE_NAMES.map((name) => ({
      runtime: name,
      model: `of-${name}`,
      modelInfo: { vocabSize: 9 },
    })),
  })
  const engine = engines.find((one) => one.runtime === runtime)
  const worker = (await workersOf(get)).find(({ url }) => url === engine?.url)
  expect(worker).toMatchObject({ runtime_type: runtime, connection_mode: 'grpc' })
  expect(worker?.models.map(({ id }) => id)).toEqual([`of-${runtime}`])
  expect(JSON.stringify(worker)).toContain('vocab_size')
})

test('engine information becomes renamed labels without empty values; labels of the registration take precedence', async () => {
  const { get } = await openGrpcFleet({
    engines: [
      {
        runtime: 'vllm',
        modelInfo: {
          vocabSize: 9,
          maxContextLength: 4_096,
          padTokenId: 0,
          modelType: '',
          architectures: ['A', 'B'],
        },
        serverInfo: {
          dataParallelSize: 2,
          blockSize: 16,
          kvConnector: 'NixlConnector',
          activeRequests: 7,
          uptimeSeconds: 5,
          serverType: 'grpc',
          isPaused: true,
          lastReceiveTimestamp: 9,
        },
        spec: { labels: { vocab_size: '10', zone: 'a' } },
      },
      {
        runtime: 'sglang',
        serverInfo: {
          serverArgs: { tp_size: 4, model_path: '/m', context_length: 0, schedule_policy: 'lpm' },
          sglangVersion: '0.5',
        },
      },
      { runtime: 'trtllm', serverInfo: { tensorParallelSize: 8, contextParallelSize: 1, version: '1.2' } },
      {
        runtime: 'tokenspeed',
        serverInfo: {
          serverArgs: { model: '/t', tokenizer: '/k' },
          schedulerInfo: { shm_namespace_id: 'n' },
        },
      },
    ],
  })
  const workers = await workersOf(get)
  const labels = (runtime: string) => workers.find((one) => one.runtime_type === runtime)?.labels ?? {}
  expect(labels('vllm')).toMatchObject({
    vocab_size: '10',
    zone: 'a',
    dp_size: '2',
    block_size: '16',
    max_context_length: '4096',
    kv_connector: 'NixlConnector',
    architectures: '["A","B"]',
    is_generation: 'true',
  })
  const silent = ['data_parallel_size', 'pad_token_id', 'model_type', 'active_requests', 'uptime_seconds']
  for (const name of [...silent, 'server_type', 'is_paused', 'last_receive_timestamp'])
    expect(labels('vllm')).not.toHaveProperty(name)
  expect(labels('sglang')).toMatchObject({ tp_size: '4', model_path: '/m', version: '0.5' })
  for (const name of ['context_length', 'schedule_policy', 'server_args'])
    expect(labels('sglang')).not.toHaveProperty(name)
  expect(labels('trtllm')).toMatchObject({ tp_size: '8', cp_size: '1', version: '1.2' })
  // The tokenizer path that the engine reports has the lowest precedence.
  expect(labels('tokenspeed')).toMatchObject({ model_path: '/t', shm_namespace_id: 'n' })
})

test('the model id is that of the registration, else the served name, the id or the path', async () => {
  const info = { servedModelName: '', tokenizerPath: 'weir:sample' }
  const { get } = await openGrpcFleet({
    engines: [
      {
        modelInfo: { ...info, servedModelName: 'served', modelPath: '/path' },
        spec: { models: [{ id: 'told' }] },
      },
      { modelInfo: { ...info, servedModelName: 'served', modelPath: '/path' } },
      { runtime: 'trtllm', model: 'by-id' },
      { runtime: 'vllm', modelInfo: { ...info, modelPath: '/models/by-path' } },
    ],
  })
  const ids = (await workersOf(get)).map(({ models }) => models.map(({ id }) => id))
  expect(ids.flat().toSorted()).toEqual(['/models/by-path', 'by-id', 'served', 'told'])
})

test('trtllm is healthy only for the status OK, in any case and surrounded by white space', async () => {
  const healthOf = (status: string) => trtllm.readHealth(encodeHealthCheckResponse({ status }))
  for (const status of ['OK', 'ok', ' ok ', '\tOk\n']) expect(healthOf(status)).toBeNull()
  for (const status of ['', 'not ok', 'OK!', 'Unavailable', 'O K', 'true'])
    expect([status, healthOf(status)]).toEqual([status, status || 'not healthy'])

  const checked = { health: { disable_health_check: false } }
  const engine = (status: string) => ({ runtime: 'trtllm', health: { status } }) as const
  const { get } = await openGrpcFleet({
    engines: [engine(' ok '), engine('not ok')],
    workers: checked,
    ready: 1,
  })
  const workers = await workersOf(get)
  expect(workers.map((one) => one.is_healthy).toSorted()).toEqual([false, true])
})

test('requests reach a restarted engine', async () => {
  const { engine, post } = await openGrpcFleet()
  engine.answer([[5]])
  const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
  expect((await post('/v1/chat/completions', ask)).status).toBe(200)
  await engine.close()
  const again = await startScriptedEngine({ port: engine.port })
  again.answer([[5]])
  await until(async () => (await post('/v1/chat/completions', ask)).status === 200)
  await again.close()
})

test('loads and cache flushes reach engines that support them', async () => {
  const loads = [{ dpRank: 0, numRunningReqs: 2, numUsedTokens: 64 }]
  const { get, post } = await openGrpcFleet({ engines: [{ loads }] })
  expect(await (await get('/get_loads')).text()).toContain('64')
  const flushed = await post('/flush_cache', {})
  expect([flushed.status, await flushed.json()]).toEqual([
    200,
    {
      status: 'success',
      message: expect.any(String),
      workers_flushed: 1,
      total_http_workers: 0,
      total_grpc_workers: 1,
      total_workers: 1,
    },
  ])
})

test('gRPC changes 1: sglang, vllm and tokenspeed flush caches and profile; other engines are reported as failed', async () => {
  const can = ['sglang', 'vllm', 'tokenspeed'] as const
  const cannot = ['trtllm', 'mlx'] as const
  const { engines, post } = await openGrpcFleet({
    engines: [...can, ...cannot].map((runtime) => ({ runtime })),
  })
  const urls = (from: number, to: number) => engines.slice(from, to).map(({ url }) => url)
  for (const path of ['/flush_cache', '/start_profile', '/stop_profile']) {
    const reply = (await (await post(path, {})).json()) as {
      successful: string[]
      failed: { worker: string; error: string }[]
    }
    expect([path, reply.successful.toSorted()]).toEqual([path, urls(0, 3).toSorted()])
    expect(reply.failed.map(({ worker }) => worker).toSorted()).toEqual(urls(3, 5).toSorted())
    for (const { error } of reply.failed) expect(error).toMatch(/(trtllm|mlx) engines do not support this/)
  }
})
