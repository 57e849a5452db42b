/** The simulated engine behind a gateway with responses, for each kind of worker. */
import { onTestFinished } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { newDirectory } from './responses-fleet.ts'

/** A chat worker, a gRPC worker with token ids, and a Responses worker. */
export const WORKER_KINDS = ['chat', 'grpc', 'native'] as const
export type WorkerKind = (typeof WORKER_KINDS)[number]

/** Stopped after the test. The API of the worker is discovered. */
export async function openSimulated(kind: WorkerKind): Promise<TestGateway> {
  const port = await freePort()
  const protocol = kind === 'grpc' ? 'grpc' : 'http'
  const gateway = await startGateway({
    plugins: {
      auth: {},
      health: {},
      grpc: {},
      parsers: {},
      policies: {},
      chat: {},
      generations: {},
      storage: { dir: newDirectory() },
      history: {},
      responses: {},
      conversations: {},
      tokenizers: { load: [{ name: 'sim-1', source: 'weir:sample' }] },
      sim: { protocol, responses: kind === 'native', listen: { port }, ttftMs: 0, itlMs: 0, tokens: 12 },
      workers: { urls: [`${protocol}://127.0.0.1:${port}`] },
    },
  })
  onTestFinished(() => gateway.stop())
  await answers(gateway.url)
  return gateway
}

async function answers(url: string): Promise<void> {
  const endsAt = performance.now() + 20_000
  for (;;) {
    const reply = await fetch(`${url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim-1', input: 'hi', store: false }),
    })
    if (reply.status === 200) return
    const said = await reply.text()
    if (performance.now() > endsAt) throw new Error(`not ready: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
