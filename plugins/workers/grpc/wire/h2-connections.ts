/** The HTTP/2 connections of one thread for generations, one for each worker address. */

import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { WorkerEntry } from '#kernel'
import { Deadlines, engineUrl } from '#shared'
import type { GrpcConfig } from '../config.ts'
import type { DataConsumer } from './data-frames.ts'
import { TappedSocket } from './tapped-socket.ts'

const DEFAULT_PORTS = { plain: 80, secure: 443 }

/** @throws TypeError when the URL cannot be read; what reading the authorities throws */
function openSocket(url: string, caFile: string | null, onReady: () => void): Socket {
  const { protocol, hostname, port } = new URL(url)
  // IPv6 addresses are in brackets.
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  if (protocol !== 'grpcs:') return connectTcp({ host, port: Number(port || DEFAULT_PORTS.plain) }, onReady)
  const options = {
    host,
    port: Number(port || DEFAULT_PORTS.secure),
    ALPNProtocols: ['h2'],
    ...(isIP(host) === 0 && { servername: host }),
    ...(caFile !== null && { ca: readFileSync(caFile) }),
  }
  return connectTls(options, onReady)
}

/** Flow-control window of a connection, released as soon as data is read. */
const CONNECTION_WINDOW_BYTES = 33_554_432

export class H2Connection {
  /** Timeouts of the calls on all connections of the thread. */
  readonly deadlines: Deadlines
  readonly #socket: Socket
  readonly #tapped: TappedSocket
  readonly #config: GrpcConfig
  /** Null until the socket is connected. */
  #session: ClientHttp2Session | null = null
  #isLost = false
  #pinger: NodeJS.Timeout | null = null
  #deadline: NodeJS.Timeout | null = null
  readonly #waiting = new Set<(isOpen: boolean) => void>()
  /** Why it failed; null if unknown. */
  problem: string | null = null

  /** @throws TypeError for an invalid URL, and errors of reading `caFile` */
  constructor(url: string, config: GrpcConfig, deadlines: Deadlines) {
    this.deadlines = deadlines
    this.#config = config
    this.#socket = openSocket(url, config.caFile, () => this.#begin(url))
    this.#tapped = new TappedSocket(this.#socket, CONNECTION_WINDOW_BYTES)
    // Errors before there is a session, which reports later ones.
    this.#tapped.on('error', (error) => {
      this.problem ??= error.message
    })
    this.#socket.once('close', () => {
      this.#isLost = true
      this.#notifyWaiting(false)
    })
  }

  #begin(url: string): void {
    const { protocol, host } = new URL(url)
    const authority = protocol === 'grpcs:' ? `https://${host}` : `http://${host}`
    const session = connect(authority, {
      createConnection: () => this.#tapped,
      settings: { initialWindowSize: this.#config.streamWindowBytes, enablePush: false },
    })
    this.#session = session
    session.on('error', (error) => {
      this.problem = error.message
    })
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
    this.#pinger = setInterval(() => this.#ping(session), this.#config.keepaliveMs)
    this.#pinger.unref()
    session.once('close', () => {
      if (this.#pinger !== null) clearInterval(this.#pinger)
      if (this.#deadline !== null) clearTimeout(this.#deadline)
    })
    this.#notifyWaiting(true)
  }

  #notifyWaiting(isOpen: boolean): void {
    for (const callback of this.#waiting) callback(isOpen)
    this.#waiting.clear()
  }

  /** New streams can be opened, now or once connected; otherwise a new connection is needed. */
  get isOpen(): boolean {
    const session = this.#session
    return !this.#isLost && (session === null || !(session.closed || session.destroyed))
  }

  get isConnecting(): boolean {
    return this.#session === null && !this.#isLost
  }

  get streamWindowBytes(): number {
    return this.#config.streamWindowBytes
  }

  /** Calls back once the connection is open (true) or has failed (false). */
  whenReady(callback: (isOpen: boolean) => void): void {
    this.#waiting.add(callback)
  }

  /** Only once connected. @param headers including pseudo headers @throws the error of http2 if the session is closed */
  open(headers: Record<string, string | string[]>): ClientHttp2Stream {
    if (this.#session === null) throw new Error('the connection is not open yet')
    return this.#session.request(headers, { endStream: false })
  }

  /** Redirects the stream's data to the consumer. */
  tap(stream: ClientHttp2Stream, consumer: DataConsumer): void {
    const { id } = stream
    if (id === undefined) return
    this.#tapped.frames.add(id, consumer)
    stream.once('close', () => this.#tapped.frames.remove(id))
  }

  untap({ id }: ClientHttp2Stream): void {
    if (id !== undefined) this.#tapped.frames.remove(id)
  }

  /** Lets the engine send this many more bytes on the stream. */
  releaseWindow({ id }: ClientHttp2Stream, bytes: number): void {
    if (id !== undefined) this.#tapped.releaseWindow(id, bytes)
  }

  /** Running streams continue. */
  close(): void {
    if (this.#session === null) this.#tapped.destroy()
    else this.#session.close()
  }

  #ping(session: ClientHttp2Session): void {
    if (session.destroyed || this.#deadline !== null) return
    this.#deadline = setTimeout(() => {
      this.problem = 'keep-alive ping timed out'
      session.destroy()
    }, this.#config.keepaliveTimeoutMs)
    session.ping(() => {
      if (this.#deadline !== null) clearTimeout(this.#deadline)
      this.#deadline = null
    })
  }
}

type Destination = Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel'>>

export class H2Connections {
  readonly #byUrl = new Map<string, H2Connection>()
  readonly #deadlines = new Deadlines()
  readonly #config: GrpcConfig

  constructor(config: GrpcConfig) {
    this.#config = config
  }

  get maxMessageBytes(): number {
    return this.#config.maxMessageBytes
  }

  /** An open or connecting connection. @throws as `H2Connection` */
  of(destination: Destination): H2Connection {
    const url = engineUrl(destination)
    let connection = this.#byUrl.get(url)
    if (connection === undefined || !connection.isOpen) {
      connection = new H2Connection(url, this.#config, this.#deadlines)
      this.#byUrl.set(url, connection)
    }
    return connection
  }

  /** Closes connections to other workers; running calls continue. */
  keepOnly(workers: readonly Destination[]): void {
    const wanted = new Set(workers.map(engineUrl))
    for (const [url, connection] of this.#byUrl) {
      if (wanted.has(url)) continue
      this.#byUrl.delete(url)
      connection.close()
    }
  }

  close(): void {
    this.keepOnly([])
  }
}
