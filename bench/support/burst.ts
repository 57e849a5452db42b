/** Requests that are all sent at one time, on connections that are open already. */
import { Agent, request } from 'node:http'
import { chatBody, REQUEST_HEADERS } from './request-bytes.ts'

const BODY = chatBody({ stream: false, bodyBytes: 250 })

export class Burst {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** @returns milliseconds of each until its answer was whole @throws when one is not 200 */
  send(count: number, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => this.#time(headers)))
  }

  end(): void {
    this.#agent.destroy()
  }

  #time(headers: Readonly<Record<string, string>>): Promise<number> {
    return new Promise((resolve, reject) => {
      const startedAtMs = performance.now()
      const sent = request(
        {
          agent: this.#agent,
          port: this.#port,
          method: 'POST',
          path: '/v1/chat/completions',
          headers: { ...REQUEST_HEADERS, ...headers, 'content-length': Buffer.byteLength(BODY) },
        },
        (reply) => {
          if (reply.statusCode !== 200) reject(new Error(`a request got ${reply.statusCode}`))
          reply.resume().on('end', () => resolve(performance.now() - startedAtMs))
        },
      )
      sent.on('error', reject).end(BODY)
    })
  }
}
