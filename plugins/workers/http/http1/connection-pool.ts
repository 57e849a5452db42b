/** @hot The connections to one worker origin: the idle ones on a stack, one exchange at a time on each of the others. */
import { connect as connectTcp, type LookupFunction, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { turnNowMs } from '#kernel'
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

export interface PoolSettings {
  /** Limit of a response's header block, in bytes. */
  readonly maxResponseHeaderBytes: number
  /** By default Node's own certificate authorities. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'rejectUnauthorized'>
  /** Default: the resolver of the system. */
  readonly lookup?: LookupFunction
  /** Age at which an idle connection is closed, in milliseconds. */
  readonly keepAliveMs: number
  /** Maximum number of idle connections. */
  readonly maxIdlePerWorker: number
  /** False disables sending a request again if an idle connection breaks. */
  readonly resends?: boolean
}

/** An exchange as the pool and its connection see it. */
export interface PooledExchange extends ResponseSink {
  readonly head: string
  readonly body: Buffer | null
  readonly isHeadRequest: boolean
  readonly isPaused: boolean
  /** Set by the pool; null before and after. */
  connection: Connection | null
  onConnecting(): void
  onRequestSent(): void
  /** Bytes of the response have arrived. */
  onBytes(): void
  /** The connection broke or could not be opened. */
  onConnectionLost(connection: Connection, cause: Error | undefined): void
}

/** What the pools of one thread share. */
export interface PoolOwner {
  /** Open connections, including idle and connecting ones. */
  openConnectionCount: number
  /** A connection has become idle. */
  onConnectionIdle(): void
}

export class ConnectionPool {
  private readonly origin: WorkerOrigin
  private readonly settings: PoolSettings
  private readonly owner: PoolOwner
  /** The longest idle first. */
  private readonly idle: Connection[] = []
  private isClosed = false
  private openCount = 0

  constructor(origin: WorkerOrigin, settings: PoolSettings, owner: PoolOwner) {
    this.origin = origin
    this.settings = settings
    this.owner = owner
  }

  get resends(): boolean {
    return this.settings.resends !== false
  }

  get idleCount(): number {
    return this.idle.length
  }

  /** True when no connection is open, idle or being set up. */
  get isUnconnected(): boolean {
    return this.openCount === 0
  }

  /** Gives the exchange a connection: the one used last, or a new one. */
  dispatch(exchange: PooledExchange): void {
    const connection = this.idle.pop()
    if (connection === undefined) {
      this.dispatchFresh(exchange)
    } else if (turnNowMs() - connection.idleSinceMs < this.settings.keepAliveMs) {
      exchange.connection = connection
      connection.reuse(exchange)
    } else {
      // The most recently used one has expired, so all have.
      connection.destroy()
      this.closeIdle()
      this.dispatchFresh(exchange)
    }
  }

  /** Gives the exchange a new connection. */
  dispatchFresh(exchange: PooledExchange): void {
    this.owner.openConnectionCount++
    this.openCount++
    exchange.onConnecting()
    exchange.connection = new Connection(this.origin, this.settings, this, exchange)
  }

  /** Returns a connection after a successful exchange. */
  release(connection: Connection): void {
    const isKept =
      !this.isClosed && this.idle.length < this.settings.maxIdlePerWorker && this.settings.keepAliveMs > 0
    if (!connection.becomeIdle() || !isKept) {
      connection.destroy()
      return
    }
    connection.idleSinceMs = turnNowMs()
    this.idle.push(connection)
    this.owner.onConnectionIdle()
  }

  /** Called once per connection. */
  onConnectionClosed(connection: Connection): void {
    this.owner.openConnectionCount--
    this.openCount--
    const place = this.idle.indexOf(connection)
    if (place !== -1) this.idle.splice(place, 1)
  }

  /** Closes connections that have been idle for too long. @param nowMs `performance.now()` */
  closeExpired(nowMs: number): void {
    while (this.idle.length > 0 && nowMs - this.idle[0].idleSinceMs >= this.settings.keepAliveMs)
      this.idle[0].destroy()
  }

  /** Closes idle connections now and busy ones when they become idle. */
  close(): void {
    this.isClosed = true
    this.closeIdle()
  }

  private closeIdle(): void {
    while (this.idle.length > 0) this.idle[this.idle.length - 1].destroy()
  }
}

/** One connection: writes a request, feeds the parser, and reports a lost connection to its exchange. */
export class Connection {
  /** `performance.now()` when the last exchange ended. */
  idleSinceMs = 0
  /** True from the second request on. */
  isReused = false
  isConnected = false
  private isClosed = false
  private exchange: PooledExchange | null = null
  private readonly pool: ConnectionPool
  private readonly parser: ResponseParser
  private readonly socket: Socket

  /** Starts to connect; the exchange's request is written as soon as that is done. */
  constructor(origin: WorkerOrigin, settings: PoolSettings, pool: ConnectionPool, exchange: PooledExchange) {
    this.pool = pool
    this.exchange = exchange
    this.parser = new ResponseParser(settings.maxResponseHeaderBytes)
    this.socket = origin.isTls ? this.connectTls(origin, settings) : this.connectTcp(origin, settings)
    this.socket.on('error', (error) => this.onLost(error))
    this.socket.on('end', () => {
      if (!this.parser.finish()) this.onLost(undefined)
    })
    this.socket.on('close', () => this.onLost(undefined))
  }

  private connectTcp({ host, port }: WorkerOrigin, { lookup }: PoolSettings): Socket {
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

  private connectTls({ host, port, servername }: WorkerOrigin, { tls, lookup }: PoolSettings): Socket {
    // Loaded with the first worker that uses it: 3 MB.
    const { connect } = process.getBuiltinModule('node:tls')
    const socket = connect({ host, port, servername, ALPNProtocols: ['http/1.1'], lookup, ...tls })
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
    socket.on('data', (chunk: Buffer) => this.onRead(chunk, chunk.length))
    return socket.on('secureConnect', () => this.onConnected())
  }

  /** Carries the next exchange. Only on an idle connection. */
  reuse(exchange: PooledExchange): void {
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
    this.pool.onConnectionClosed(this)
  }

  /** Writable, after the TLS handshake if any. */
  private onConnected(): void {
    this.isConnected = true
    if (this.exchange !== null) this.write(this.exchange)
  }

  private write(exchange: PooledExchange): void {
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
