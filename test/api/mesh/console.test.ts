/** The live stream of the console in a mesh: one gateway, or all of them together. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { startScriptedWorker } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { valkeySkipReason } from '../../support/valkey-server.ts'
import { type MeshGateway, newMesh, openGateway, ROOT, useValkey } from './mesh-fleet.ts'

const CHAT = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] }

describe.skipIf(valkeySkipReason !== null)('two gateways on one Valkey', () => {
  const valkey = useValkey()

  /** @returns reads the points so far */
  function watch({ url }: MeshGateway, scope: 'gateway' | 'mesh') {
    const stream = openSse(`${url}/console/live?scope=${scope}`, { headers: ROOT })
    onTestFinished(() => stream.close())
    return () => stream.events.filter(({ event }) => event === 'point').map(({ data }) => JSON.parse(data))
  }

  it('scope mesh has the traffic of both gateways and counts their workers once, scope gateway that of one', async () => {
    const options = { mesh: newMesh(), plugins: { console: {}, metrics: { port: 0 } } }
    const [a, b] = [
      await openGateway('gw-1', valkey.server, options),
      await openGateway('gw-2', valkey.server, options),
    ]
    const worker = await startScriptedWorker({ models: ['llama'] })
    onTestFinished(() => worker.close())
    const spec = { url: worker.url, runtime_type: 'sglang', models: [{ id: 'llama' }] }
    expect((await a.call('POST', '/workers', spec)).status).toBe(202)
    const [own, all] = [watch(a, 'gateway'), watch(a, 'mesh')]
    const last = (read: typeof own) => read().at(-1)
    await expect.poll(() => last(all)?.gateways).toBe(2)

    // Only the other gateway serves.
    const headers = { authorization: 'Bearer api-key' }
    await expect
      .poll(
        async () => {
          await b.call('POST', '/v1/chat/completions', CHAT, headers)
          return all().some((point) => point.requests_per_s > 0 && point.ttft_ms !== null)
        },
        { timeout: 30_000 },
      )
      .toBe(true)
    expect(own().every(({ requests_per_s, gateways }) => requests_per_s === 0 && gateways === 1)).toBe(true)
    expect([last(all)?.workers, last(own)?.workers]).toEqual([
      { ready: 1, total: 1 },
      { ready: 1, total: 1 },
    ])

    await b.stop()
    await expect.poll(() => last(all)?.gateways).toBe(1)
  })
})
