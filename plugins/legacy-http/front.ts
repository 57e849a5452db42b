/** The server of this port: heads in, exchanges and tunnels out, and what breaks before them answered in our words. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ClientAddressing, canonicalAddress, GatewayError, type Host } from '#kernel'
import { Certificates } from './certificates.ts'
import type { LegacyHttpConfig } from './config.ts'
import { legacyErrors } from './errors.ts'
import { Exchange } from './exchange.ts'
import { type ForwardedHead, forwardedHead } from './forwarded-head.ts'
import { Inner } from './inner.ts'
import { refuse, refuseRaw } from './refusal.ts'
import { isWebSocket, openWebSocket, passOver } from './tunnel.ts'

const ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
/** How often heads that take too long are looked for, at most. milliseconds */
const LOOK_MS = 1_000

/** What a connection has under way: one request is answered after the other, in their order. */
interface Turns {
  running: ServerResponse | null
  exchange: Exchange | null
  readonly waiting: (() => void)[]
}

export class Front {
  readonly #host: Host
  readonly #config: LegacyHttpConfig
  readonly #clients: ClientAddressing | null
  readonly #inner: Inner
  /** Null when the API speaks plain HTTP. */
  readonly #certificates: Certificates | null
  readonly #server: Server
  readonly #turns = new WeakMap<Duplex, Turns>()
  readonly #sockets = new Set<Socket>()
  readonly #tunnels = new Set<Duplex>()
  #isEnding = false
  /** Connections were dropped since the last one ended. */
  #isFull = false

  /** @param clients null where nobody's word about clients is taken */
  constructor(host: Host, config: LegacyHttpConfig, clients: ClientAddressing | null) {
    this.#host = host
    this.#config = config
    this.#clients = clients
    this.#inner = new Inner(host.kernelConfig)
    const { tls } = host.kernelConfig
    const options = {
      maxHeaderSize: config.maxHeaderBytes,
      headersTimeout: config.headMs,
      // The gateway behind is patient with bodies, or not.
      requestTimeout: 0,
      keepAliveTimeout: config.idleMs,
      connectionsCheckingInterval: Math.min(LOOK_MS, config.headMs),
      requireHostHeader: false,
    }
    this.#certificates =
      tls === undefined ? null : new Certificates(() => host.kernelConfig.tls ?? tls, host.log)
    if (this.#certificates === null) this.#server = createServer(options)
    else {
      const server = createSecureServer({ ...options, ...this.#certificates.options })
      this.#certificates.renew(server)
      this.#server = server
    }
    this.#server.maxConnections = config.maxConnections
    // A limit here would drop headers without a word; they are counted instead.
    this.#server.maxHeadersCount = 0
    this.#watch()
  }

  /** @throws Error when the address cannot be had */
  async listen(): Promise<void> {
    const { host, port } = this.#config
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen({ host, port, exclusive: true }, resolve)
    await promise.catch((error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is taken by another program' : error.message
      throw new Error(
        `cannot listen on ${host}:${port}: ${why}; choose another one with plugins.legacy-http.port and .host`,
      )
    })
    this.#server.on('error', (err) => this.#host.log.error({ err }, 'the listener failed'))
  }

  /** Takes no new connections; resolves when all are closed or the time is over. */
  async drain(deadlineMs: number): Promise<void> {
    this.#isEnding = true
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, deadlineMs)
    this.#server.close(() => resolve())
    this.#server.closeIdleConnections()
    for (const tunnel of this.#tunnels) tunnel.end()
    await promise
    clearTimeout(timer)
  }

  close(): void {
    this.#certificates?.close()
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#inner.close()
  }

  #watch(): void {
    const server = this.#server
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.#takeTurn(request, response, false)
    server.on('request', onRequest)
    server.on('checkContinue', (request, response) => this.#takeTurn(request, response, true))
    server.on('checkExpectation', onRequest)
    server.on('upgrade', (request, socket, first) => this.#upgrade(request, socket, first))
    server.on('connect', (_request, socket) =>
      refuseRaw(socket, legacyErrors.method_not_allowed.with({ headers: ['allow', ALLOW] }, 'CONNECT')),
    )
    server.on('drop', () => this.#dropped())
    server.on('clientError', (error, socket) => this.#clientFailed(error, socket))
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        this.#isFull = false
      })
      // Those of the parser go on to `clientError`.
      socket.on('error', () => {})
    })
  }

  /** Told once for each time that the limit is met: those beyond it have no request that could be answered. */
  #dropped(): void {
    if (this.#isFull) return
    this.#isFull = true
    const { maxConnections } = this.#config
    this.#host.log.warn(
      { maxConnections },
      'connections beyond plugins.legacy-http.maxConnections are closed',
    )
  }

  #takeTurn(request: IncomingMessage, response: ServerResponse, wantsContinue: boolean): void {
    const { socket } = request
    const turns = this.#turnsOf(socket)
    const run = () => {
      turns.running = response
      turns.exchange = null
      response.once('close', () => next())
      this.#serve(request, response, wantsContinue, turns)
    }
    const next = () => {
      turns.running = null
      turns.exchange = null
      const waiting = turns.waiting.shift()
      if (turns.waiting.length === 0) socket.resume()
      waiting?.()
      // Its connection is idle only once this event is over.
      if (this.#isEnding) setImmediate(() => this.#server.closeIdleConnections())
    }
    if (turns.running === null) {
      run()
      return
    }
    // Nothing more is read from a client that asks ahead.
    turns.waiting.push(run)
    socket.pause()
  }

  #turnsOf(socket: Duplex): Turns {
    const known = this.#turns.get(socket)
    if (known !== undefined) return known
    const turns: Turns = { running: null, exchange: null, waiting: [] }
    this.#turns.set(socket, turns)
    return turns
  }

  #serve(request: IncomingMessage, response: ServerResponse, wantsContinue: boolean, turns: Turns): void {
    const head = this.#headOf(request, (error) => refuse(response, error))
    if (head === null) return
    if (head.path === '*') {
      response.writeHead(204, { allow: ALLOW })
      response.end()
      return
    }
    if (wantsContinue) {
      const { maxBodyBytes } = this.#host.kernelConfig.http
      if ((head.contentLength ?? 0) > maxBodyBytes) {
        refuse(response, legacyErrors.payload_too_large(maxBodyBytes))
        return
      }
      response.writeContinue()
    }
    turns.exchange = new Exchange(request, response, head, this.#inner, () => this.#host.isDraining)
  }

  #upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    const turns = this.#turnsOf(socket)
    const run = () => {
      const head = this.#headOf(request, (error) => refuseRaw(socket, error))
      if (head === null) return
      if (!isWebSocket(request)) {
        passOver(socket, first, head, this.#inner)
        return
      }
      this.#tunnels.add(socket)
      socket.on('close', () => this.#tunnels.delete(socket))
      openWebSocket(socket, first, head, this.#inner)
    }
    if (turns.running === null) run()
    else turns.waiting.push(run)
  }

  #headOf(request: IncomingMessage, onError: (error: GatewayError) => void): ForwardedHead | null {
    try {
      const peer = canonicalAddress(request.socket.remoteAddress ?? '')
      const { maxHeaderCount: maxCount } = this.#host.kernelConfig.http
      return forwardedHead(request, { peer, maxCount, clients: this.#clients })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      onError(error)
      return null
    }
  }

  #clientFailed(error: NodeJS.ErrnoException, socket: Duplex): void {
    const refused = this.#toError(error.code ?? '')
    const turns = this.#turns.get(socket)
    if (refused === null) socket.destroy()
    else if (turns?.exchange != null) turns.exchange.fail(refused)
    else if (turns?.running != null) socket.destroy()
    else refuseRaw(socket, refused)
  }

  /** Null when there is nobody left to tell. */
  #toError(code: string): GatewayError | null {
    const { headMs, maxHeaderBytes } = this.#config
    if (code === 'HPE_HEADER_OVERFLOW') return legacyErrors.headers_too_large(`${maxHeaderBytes} bytes`)
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return legacyErrors.head_timeout(headMs)
    if (code === 'HPE_INVALID_VERSION' || code === 'HPE_PAUSED_H2_UPGRADE')
      return legacyErrors.http_version_not_supported()
    if (code === 'HPE_INVALID_EOF_STATE' || !code.startsWith('HPE_')) return null
    return legacyErrors.bad_framing(`the request cannot be read (${code.slice('HPE_'.length).toLowerCase()})`)
  }
}
