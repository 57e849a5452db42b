/** Times single requests while a load runs. */
import { Agent, type RequestOptions, request } from 'node:http'
import { chatBody, REQUEST_HEADERS } from './request-bytes.ts'
import { BENCH_KEY } from './subject.ts'

export interface LatencyProbe {
  /** Stops the probe. @returns milliseconds from request to end of response, ascending */
  stop(): Promise<number[]>
}

/** An agent with one connection, so that all requests reach the same serving thread. */
export const oneConnection = () => new Agent({ keepAlive: true, maxSockets: 1 })

/**
 * Sends one request after another.
 *
 * @param pauseMs between a response and the next request
 * @param excludedMs increasing counter of time to subtract, such as the time in a run queue
 * @param agent closed by `stop`
 */
export function startProbe(
  port: number,
  path: string,
  pauseMs: number,
  excludedMs: () => number = () => 0,
  agent = oneConnection(),
): LatencyProbe {
  const times: number[] = []
  let isStopped = false
  const run = async () => {
    while (!isStopped) {
      const before = excludedMs()
      const elapsedMs = await timeGet(agent, port, path)
      times.push(Math.max(0, elapsedMs - (excludedMs() - before)))
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
      agent.destroy()
      return times.sort((left, right) => left - right)
    },
  }
}

/** @returns milliseconds @throws if the status is not 200 */
export function timeGet(agent: Agent, port: number, path: string): Promise<number> {
  return timeRequest({ agent, port, path, headers: { authorization: `Bearer ${BENCH_KEY}` } })
}

/** Sends chats at one moment over connections that stay open. */
export class Burst {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** @returns milliseconds of each request until the end of its response @throws if a status is not 200 */
  send(count: number, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
    const body = chatBody({ stream: false, bodyBytes: 250 })
    const options = {
      agent: this.#agent,
      port: this.#port,
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { ...REQUEST_HEADERS, ...headers, 'content-length': Buffer.byteLength(body) },
    }
    return Promise.all(Array.from({ length: count }, () => timeRequest(options, body)))
  }

  end(): void {
    this.#agent.destroy()
  }
}

function timeRequest(options: RequestOptions, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAtMs = performance.now()
    const sent = request({ host: '127.0.0.1', ...options }, (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - startedAtMs)
        else reject(new Error(`${options.path} returned ${response.statusCode}`))
      })
    })
    sent.on('error', reject).end(body)
  })
}

/** @param sorted ascending, not empty */
export function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]
}
