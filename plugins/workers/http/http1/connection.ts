/** @hot One connection to a worker: writes a request, feeds the parser, and reports a lost connection to its exchange. */
import { connect as connectTcp, type LookupFunction, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { ResponseParser, type ResponseSink } from './response-parser.ts'
import type { WorkerOrigin } from './worker-origin.ts'

/** Larger bodies are not joined with the head: a second buffer in one write is cheaper than the copy. */
const MAX_JOINED_BODY_BYTES = 16_384

const KEEP_ALIVE_PROBE_MS = 30_000

/**
 * Read buffer of all TCP sockets of the thread. Each read is consumed before the next one starts, so idle connections hold
 * no read memory.
 */
const readBuffer = Buffer.allocUnsafeSlow(65_536)

export interface ConnectionSettings {
  /** Limit of a response's header block, in bytes. */
  readonly maxResponseHeaderBytes: number
  /** By default Node's own certificate authorities. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'rejectUnauthorized'>
  /** Default: the resolver of the system. */
  readonly lookup?: LookupFunction
}

/** An exchange as its connection sees it. */
export interface CarriedExchange extends ResponseSink {
  readonly head: string
  readonly body: Buffer | null
  readonly isHeadRequest: boolean
  readonly isPaused: boolean
  onRequestSent(): void
  /** Bytes of the response have arrived. */
  onBytes(): void
  /** The connection broke or could not be opened. */
  onConnectionLost(connection: Connection, cause: Error | undefined): void
}

/** Keeps the connection between exchanges. */
export interface ConnectionOwner {
  /** Called once per connection. */
  onConnectionClosed(connection: Connection): void
}

export class Connection {
  /** `performance.now()` when the last exchange ended. */
  idleSinceMs = 0
  /** True from the second request on. */
  isReused = false
  isConnected = false
  private isClosed = false
  private exchange: CarriedExchange | null = null
  private readonly owner: ConnectionOwner
  private readonly parser: ResponseParser
  private readonly socket: Socket

  /** Starts to connect; the exchange's request is written as soon as that is done. */
  constructor(
    origin: WorkerOrigin,
    settings: ConnectionSettings,
    owner: ConnectionOwner,
    exchange: CarriedExchange,
  ) {
    this.owner = owner
    this.exchange = exchange
    this.parser = new ResponseParser(settings.maxResponseHeaderBytes)
    this.socket = origin.isTls ? this.connectTls(origin, settings) : this.connectTcp(origin, settings)
    this.socket.on('error', (error) => this.onLost(error))
    this.socket.on('end', () => {
      if (!this.parser.finish()) this.onLost(undefined)
    })
    this.socket.on('close', () => this.onLost(undefined))
  }

  private connectTcp({ host, port }: WorkerOrigin, { lookup }: ConnectionSettings): Socket {
    const socket = connectTcp({
      host,
      port,
      lookup,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          this.onRead(readBuffer, length)
          return true
        },
      },
    })
    return socket.on('connect', () => this.onConnected())
  }

  private connectTls({ host, port, servername }: WorkerOrigin, { tls, lookup }: ConnectionSettings): Socket {
    const socket = connectTls({ host, port, servername, ALPNProtocols: ['http/1.1'], lookup, ...tls })
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
    socket.on('data', (chunk: Buffer) => this.onRead(chunk, chunk.length))
    return socket.on('secureConnect', () => this.onConnected())
  }

  /** Carries the next exchange. Only on an idle connection. */
  reuse(exchange: CarriedExchange): void {
    this.isReused = true
    this.exchange = exchange
    this.write(exchange)
  }

  /** Called after a complete response. @returns false if the connection cannot carry another exchange */
  becomeIdle(): boolean {
    this.exchange = null
    if (this.isClosed || this.socket.writableLength > 0) return false
    if (this.socket.isPaused()) this.socket.resume()
    return true
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  /** Closes at once without notifying the exchange. */
  destroy(): void {
    this.exchange = null
    if (this.isClosed) return
    this.isClosed = true
    this.parser.stop()
    this.socket.destroy()
    this.owner.onConnectionClosed(this)
  }

  /** Writable, after the TLS handshake if any. */
  private onConnected(): void {
    this.isConnected = true
    if (this.exchange !== null) this.write(this.exchange)
  }

  private write(exchange: CarriedExchange): void {
    const { head, body } = exchange
    this.parser.begin(exchange, exchange.isHeadRequest)
    exchange.onRequestSent()
    if (exchange.isPaused) this.socket.pause()
    if (body === null || body.length === 0) {
      this.socket.write(head, 'latin1')
    } else if (body.length <= MAX_JOINED_BODY_BYTES) {
      this.socket.write(head + body.toString('latin1'), 'latin1')
    } else {
      this.socket.cork()
      this.socket.write(head, 'latin1')
      this.socket.write(body)
      this.socket.uncork()
    }
  }

  /** The bytes from 0 to `length` are valid during the call; the parser may write to them. */
  private onRead(buffer: Buffer, length: number): void {
    if (this.exchange === null) {
      // Unsolicited bytes would be taken for the next response.
      this.destroy()
      return
    }
    this.exchange.onBytes()
    this.parser.push(buffer, length)
  }

  /** Broken, refused or closed; may be called more than once. */
  private onLost(cause: Error | undefined): void {
    const exchange = this.exchange
    this.destroy()
    exchange?.onConnectionLost(this, cause)
  }
}
