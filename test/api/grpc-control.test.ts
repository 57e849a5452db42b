/** Workers that are reached over gRPC: what they are found to be, and what operators ask of them. @source grpc facts 8.2 */
import { expect, test } from 'vitest'
import { openGrpcFleet, until } from './grpc-fleet.ts'

type Worker = Record<string, unknown> & { labels: Record<string, string>; models: { id: string }[] }

const workersOf = async (get: (path: string) => Promise<Response>) =>
  ((await (await get('/workers')).json()) as { workers: Worker[] }).workers

test.each(['sglang', 'vllm', 'trtllm', 'tokenspeed', 'mlx'] as const)(
  '8.2 #55 #57 #58: a stranger is found to be %s, with its labels and its model',
  async (runtime) => {
    const { get } = await openGrpcFleet({
      engines: [{ runtime, model: 'named', modelInfo: { vocabSize: 9 } }],
    })
    const [worker] = await workersOf(get)
    expect(worker).toMatchObject({ runtime_type: runtime, connection_mode: 'grpc' })
    expect(worker.models.map(({ id }) => id)).toEqual(['named'])
    expect(JSON.stringify(worker)).toContain('vocab_size')
  },
)

test('8.2 #56: the health of trtllm is OK however it is written, and nothing else', async () => {
  const { get } = await openGrpcFleet({ engines: [{ runtime: 'trtllm', health: { status: ' ok ' } }] })
  expect(await workersOf(get)).toHaveLength(1)
})

test('8.2 #53: an engine that was restarted is reached again', async () => {
  const { engine, post } = await openGrpcFleet()
  engine.answer([[5]])
  const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
  expect((await post('/v1/chat/completions', ask)).status).toBe(200)
  await engine.close()
  const { startScriptedEngine } = await import('../support/scripted-engine.ts')
  const again = await startScriptedEngine({ port: engine.port })
  again.answer([[5]])
  await until(async () => (await post('/v1/chat/completions', ask)).status === 200)
  await again.close()
})

test('loads and flush reach engines that have them', async () => {
  const loads = [{ dpRank: 0, numRunningReqs: 2, numUsedTokens: 64 }]
  const { get, post } = await openGrpcFleet({ engines: [{ loads }] })
  expect(await (await get('/get_loads')).text()).toContain('64')
  expect((await post('/flush_cache', {})).status).toBe(200)
})
