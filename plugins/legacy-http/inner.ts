/** The way to the gateway's own listener: kept connections from this machine to itself. */
import { type Agent, type ClientRequest, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { request as secureRequest, Agent as TlsAgent } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as secureConnect } from 'node:tls'
import type { KernelConfig } from '#kernel'

/** Well below the ten seconds after which the listener closes an idle connection. milliseconds */
const FREE_SOCKET_MS = 4_000
const MAX_FREE_SOCKETS = 64

export class Inner {
  readonly #isTls: boolean
  readonly #address: { readonly host: string; readonly port: number }
  readonly #agent: Agent

  constructor({ host, port, tls }: KernelConfig) {
    this.#isTls = tls !== undefined
    this.#address = { host: reachable(host), port }
    const options = { keepAlive: true, timeout: FREE_SOCKET_MS, maxFreeSockets: MAX_FREE_SOCKETS }
    // The certificate speaks for the public name; this connection goes to this process and nowhere else.
    this.#agent = this.#isTls
      ? new TlsAgent({ ...options, rejectUnauthorized: false })
      : new PlainAgent(options)
  }

  request(method: string, path: string, headers: readonly string[], isKept: boolean): ClientRequest {
    const send = this.#isTls ? secureRequest : plainRequest
    return send({
      ...this.#address,
      method,
      path,
      headers,
      agent: isKept ? this.#agent : false,
      setHost: false,
      ...(this.#isTls && { rejectUnauthorized: false }),
    })
  }

  /** A connection for bytes as they are. */
  connect(): Socket {
    return this.#isTls
      ? secureConnect({ ...this.#address, rejectUnauthorized: false })
      : connect({ ...this.#address, noDelay: true })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}
