/** Requests of clients while the engine is frozen, and while gateways are replaced one by one. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startSim, stopCommands, until } from '../support/built-command.ts'
import { ENGINE_TIMEOUT_MS, type MeshProcess, startMeshProcesses } from '../support/mesh-gateways.ts'
import { jsonAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

let server: ValkeyServer
beforeAll(async () => {
  if (valkeySkipReason === null) server = await startValkey()
})
afterEach(async () => {
  server?.resume()
  await stopCommands()
})
afterAll(() => server?.remove())

const CHAT = { model: 'demo', messages: [{ role: 'user' as const, content: 'Hello' }], max_tokens: 16 }
const worker = (url: string) => ({ url, runtime_type: 'sglang', models: [{ id: 'demo' }] })

/** Spreads connections over the ready gateways, as a load balancer does. */
async function openBalancer(all: readonly MeshProcess[]): Promise<{ url: string; close: () => void }> {
  const ready = new Set(all)
  const check = async (one: MeshProcess) => {
    const isReady = await one.gateway.get('/readiness').then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) ready.add(one)
    else ready.delete(one)
  }
  const timer = setInterval(() => void Promise.all(all.map(check)), 200)
  let count = 0
  const balancer = createServer((client) => {
    const [...targets] = ready
    const target = connect(targets[count++ % targets.length].port, '127.0.0.1')
    client.pipe(target).pipe(client)
    client.on('error', () => target.destroy())
    target.on('error', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(balancer, 'listening')
  return {
    url: `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`,
    close: () => {
      clearInterval(timer)
      balancer.close()
    },
  }
}

describe.skipIf(valkeySkipReason !== null)('serving', () => {
  it('relayed chats do not wait for a frozen engine', async () => {
    const scripted = await startScriptedWorker({ models: ['demo'] })
    scripted.script(
      'POST /v1/chat/completions',
      jsonAnswer({ id: 'x', object: 'chat.completion', choices: [] }),
    )
    const [one] = await startMeshProcesses(1, {
      url: server.url,
      mesh: 'frozen',
      workers: [worker(scripted.url)],
    })
    const url = `${one.gateway.url}/v1/chat/completions`
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(CHAT),
    }
    /** @returns the duration that 9 of 10 requests do not exceed */
    const measure = async (): Promise<number> => {
      const times: number[] = []
      for (let count = 0; count < 200; count += 1) {
        const startedAtMs = performance.now()
        const response = await fetch(url, request)
        await response.text()
        expect(response.status).toBe(200)
        times.push(performance.now() - startedAtMs)
      }
      return times.sort((a, b) => a - b)[180]
    }
    const state = async () => (await one.status()).engine.state
    await measure()
    const before = await measure()
    server.freeze()
    const whileFrozen = await measure()
    await until(async () => (await state()) === 'degraded')
    const whileDegraded = await measure()
    server.resume()
    await until(async () => (await state()) === 'connected')
    console.log(
      `p90: ${before.toFixed(2)} ms, frozen ${whileFrozen.toFixed(2)}, degraded ${whileDegraded.toFixed(2)}`,
    )
    // Requests that waited for the engine would take as long as the engine has.
    expect(Math.max(whileFrozen, whileDegraded) - before).toBeLessThan(ENGINE_TIMEOUT_MS / 2)
    await scripted.close()
  })

  it('replacing three gateways one by one fails no request of the OpenAI client', async () => {
    const sim = await startSim('--model', 'demo', '--tokens', '16', '--ttft-ms', '5', '--itl-ms', '5')
    const all = await startMeshProcesses(3, {
      url: server.url,
      mesh: 'rolling',
      workers: [worker(sim.url)],
      kernel: { shutdown: { graceMs: 20_000, settleMs: 2_000 } },
    })
    const balancer = await openBalancer(all)
    const client = new OpenAI({ baseURL: `${balancer.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const failures: string[] = []
    let isOver = false
    let sent = 0
    const lane = async (number: number) => {
      while (!isOver) {
        sent += 1
        try {
          if (number % 2 === 0) await client.chat.completions.create(CHAT)
          else for await (const _ of await client.chat.completions.create({ ...CHAT, stream: true }));
        } catch (error) {
          failures.push(String(error))
        }
      }
    }
    const lanes = Array.from({ length: 8 }, (_, number) => lane(number))
    for (const one of all) {
      one.gateway.command.signal('SIGTERM')
      expect((await one.gateway.command.ended).code).toBe(0)
      await one.start()
      await until(
        async () => (await one.status()).nodes.filter(({ status }) => status === 'Alive').length === 3,
      )
    }
    isOver = true
    await Promise.all(lanes)
    balancer.close()
    console.log(`${sent} requests`)
    expect(failures).toEqual([])
    expect(sent).toBeGreaterThan(50)
  })
})
