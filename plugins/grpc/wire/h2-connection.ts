/** One HTTP/2 connection to a worker, which is pinged while it stands and told apart from one that is coming to its end. */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { GrpcConfig } from '../config.ts'

/** What all streams of a connection may be behind together; Node gives back at once what it has read. */
const CONNECTION_WINDOW_BYTES = 33_554_432

export class H2Connection {
  readonly #session: ClientHttp2Session
  readonly #config: GrpcConfig
  readonly #pinger: NodeJS.Timeout
  #deadline: NodeJS.Timeout | null = null
  readonly #waiting = new Set<() => void>()
  /** Why it does not stand; null where nothing was said. */
  problem: string | null = null

  /** @throws TypeError when the URL cannot be read; what reading the authorities throws */
  constructor(url: string, config: GrpcConfig) {
    this.#config = config
    const { protocol, host } = new URL(url)
    const isSecure = protocol === 'grpcs:'
    const { caFile, streamWindowBytes, keepaliveMs } = config
    this.#session = connect(
      `${isSecure ? 'https' : 'http'}://${isSecure || host.includes(':') ? host : `${host}:80`}`,
      {
        settings: { initialWindowSize: streamWindowBytes, enablePush: false },
        ...(isSecure && caFile !== null && { ca: readFileSync(caFile) }),
      },
    )
    this.#session.on('error', (error) => {
      this.problem = error.message
    })
    this.#session.once('connect', (session, socket) => {
      if ('setNoDelay' in socket) socket.setNoDelay(true)
      session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
      for (const told of this.#waiting) told()
      this.#waiting.clear()
    })
    this.#pinger = setInterval(() => this.#ping(), keepaliveMs)
    this.#pinger.unref()
    this.#session.once('close', () => {
      clearInterval(this.#pinger)
      if (this.#deadline !== null) clearTimeout(this.#deadline)
      this.#waiting.clear()
    })
  }

  /** New streams can be opened; otherwise another connection is due. */
  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  get isConnecting(): boolean {
    return this.#session.connecting
  }

  /** @param told once it stands; never when it comes to nothing */
  onConnect(told: () => void): void {
    this.#waiting.add(told)
  }

  /** @param headers with the pseudo ones */
  open(headers: Record<string, string | string[]>): ClientHttp2Stream {
    return this.#session.request(headers, { endStream: false })
  }

  /** Streams under way go on. */
  close(): void {
    if (this.#session.connecting) this.#session.destroy()
    else this.#session.close()
  }

  #ping(): void {
    if (this.#session.connecting || this.#session.destroyed || this.#deadline !== null) return
    this.#deadline = setTimeout(() => {
      this.problem = 'a ping was not answered'
      this.#session.destroy()
    }, this.#config.keepaliveTimeoutMs)
    this.#session.ping(() => {
      if (this.#deadline !== null) clearTimeout(this.#deadline)
      this.#deadline = null
    })
  }
}
