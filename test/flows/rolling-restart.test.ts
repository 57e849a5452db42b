/** Workers restart one by one under load, and the gateway shuts down under load; no request fails. */
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  type BuiltSim,
  startBuiltGateway,
  startSim,
  stopCommands,
  sumOf,
  until,
} from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'
import { COMPLETE, endingOfStream } from '../support/request-ending.ts'
import { openSse } from '../support/sse-client.ts'

const PER_SECOND = 200
const chat = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 16 }
const FLAGS = ['--model', 'demo', '--tokens', '16', '--ttft-ms', '5', '--itl-ms', '5']

afterEach(() => stopCommands())

/** Sends requests at a constant rate until it is stopped. */
class Load {
  readonly endings: Promise<string>[] = []
  readonly #timer: NodeJS.Timeout

  constructor(gateway: BuiltGateway) {
    const tickMs = 20
    this.#timer = setInterval(() => {
      for (let i = 0; i < (PER_SECOND * tickMs) / 1_000; i++) this.endings.push(this.#send(gateway))
    }, tickMs)
  }

  async #send(gateway: BuiltGateway): Promise<string> {
    const body = this.endings.length % 2 === 0 ? chat : { ...chat, stream: true }
    const stream = openSse(`${gateway.url}/v1/chat/completions`, { body })
    await stream.done
    return endingOfStream(stream)
  }

  /** @returns the number of requests by ending */
  async stop(): Promise<Record<string, number>> {
    clearInterval(this.#timer)
    const counts: Record<string, number> = {}
    for (const ending of await Promise.all(this.endings)) counts[ending] = (counts[ending] ?? 0) + 1
    return counts
  }
}

const startOn = (port: number): Promise<BuiltSim> => startSim('--port', String(port), ...FLAGS)
const spec = (url: string) => ({ url, runtime_type: 'sglang', models: [{ id: 'demo' }] })

interface Fleet {
  readonly gateway: BuiltGateway
  readonly ports: readonly number[]
  readonly sims: BuiltSim[]
}

async function openFleet(): Promise<Fleet> {
  const ports = await Promise.all(Array.from({ length: 4 }, freePort))
  const sims = await Promise.all(ports.map(startOn))
  const gateway = await startBuiltGateway({
    // Real engines take minutes to restart, these take a second, which breakers should not outlast.
    kernel: {
      log: { level: 'silent' },
      retry: { initialBackoffMs: 10 },
      breaker: { openMs: 300 },
      shutdown: { settleMs: 6_000 },
    },
    plugins: { workers: { health: { drain_settle_secs: 5 } } },
    workers: sims.map(({ url }) => spec(url)),
  })
  return { gateway, ports, sims }
}

interface Listed {
  workers: { id: string; url: string; status: string }[]
}

const list = async (gateway: BuiltGateway) =>
  ((await (await gateway.get('/workers')).json()) as Listed).workers

test('draining, restarting and registering workers one by one fails no request', async () => {
  const { gateway, ports, sims } = await openFleet()
  const load = new Load(gateway)
  for (const [index, port] of ports.entries()) {
    const { url } = sims[index]
    const worker = (await list(gateway)).find((one) => one.url === url)
    await gateway.send('DELETE', `/workers/${worker?.id}`)
    await until(async () => (await list(gateway)).every((one) => one.url !== url))
    await sims[index].command.stop()
    await startOn(port)
    await gateway.send('POST', '/workers', spec(url))
    await until(async () => (await list(gateway)).some((one) => one.url === url && one.status === 'ready'))
  }
  const endings = await load.stop()
  expect(endings).toEqual({ [COMPLETE]: load.endings.length })
  expect(load.endings.length).toBeGreaterThan(PER_SECOND)
})

test('graceful worker exits without deregistration, one by one, fail no request', async () => {
  const { gateway, ports, sims } = await openFleet()
  const load = new Load(gateway)
  for (const [index, port] of ports.entries()) {
    sims[index].command.signal('SIGTERM')
    await sims[index].command.ended
    await startOn(port)
    // The next worker exits once the breaker of this one is closed.
    await until(async () => sumOf(await gateway.metrics(), 'weir_worker_cb_state') === 0)
  }
  expect(await load.stop()).toEqual({ [COMPLETE]: load.endings.length })
})

test('a gateway that shuts down under load completes every accepted request', async () => {
  const { gateway } = await openFleet()
  const load = new Load(gateway)
  const long = Array.from({ length: 20 }, () =>
    openSse(`${gateway.url}/v1/chat/completions`, { body: { ...chat, max_tokens: 300, stream: true } }),
  )
  await Promise.all(long.map((stream) => stream.receive(2)))
  gateway.command.signal('SIGTERM')
  // A load balancer stops sending once readiness fails.
  await until(async () => (await gateway.get('/readiness')).status === 503)
  expect(await load.stop()).toEqual({ [COMPLETE]: load.endings.length })
  await Promise.all(long.map((stream) => stream.done))
  expect(new Set(long.map(endingOfStream))).toEqual(new Set([COMPLETE]))
  expect((await gateway.command.ended).code).toBe(0)
})
