/** The HTTP/2 connections of one thread for generations, one for each worker address. */

import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { GrpcConfig } from '../config.ts'
import { baseUrlOf, type Destination } from './channels.ts'
import type { DataTaker } from './data-frames.ts'
import { TappedSocket } from './tapped-socket.ts'

const DEFAULT_PORTS = { plain: 80, secure: 443 }

/** @throws TypeError when the URL cannot be read; what reading the authorities throws */
export function openSocket(url: string, caFile: string | null, onReady: () => void): Socket {
  const { protocol, hostname, port } = new URL(url)
  // Addresses of version 6 stand in brackets.
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

/** What all streams of a connection may be behind together; it is given back at once when it was read. */
const CONNECTION_WINDOW_BYTES = 33_554_432

export class H2Connection {
  readonly #socket: Socket
  readonly #tapped: TappedSocket
  readonly #config: GrpcConfig
  /** Null until the socket stands. */
  #session: ClientHttp2Session | null = null
  #isLost = false
  #pinger: NodeJS.Timeout | null = null
  #deadline: NodeJS.Timeout | null = null
  readonly #waiting = new Set<(stands: boolean) => void>()
  /** Why it does not stand; null where nothing was said. */
  problem: string | null = null

  /** @throws TypeError when the URL cannot be read; what reading the authorities throws */
  constructor(url: string, config: GrpcConfig) {
    this.#config = config
    this.#socket = openSocket(url, config.caFile, () => this.#begin(url))
    this.#tapped = new TappedSocket(this.#socket, CONNECTION_WINDOW_BYTES)
    // What goes wrong before there is a session; that one tells it itself.
    this.#tapped.on('error', (error) => {
      this.problem ??= error.message
    })
    this.#socket.once('close', () => {
      this.#isLost = true
      this.#tell(false)
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
    this.#tell(true)
  }

  #tell(stands: boolean): void {
    for (const told of this.#waiting) told(stands)
    this.#waiting.clear()
  }

  /** New streams can be opened, now or when it stands; otherwise another connection is due. */
  get isOpen(): boolean {
    const session = this.#session
    return !this.#isLost && (session === null || !(session.closed || session.destroyed))
  }

  get isConnecting(): boolean {
    return this.#session === null && !this.#isLost
  }

  /** What an engine may send ahead of the reader of a stream. */
  get streamWindowBytes(): number {
    return this.#config.streamWindowBytes
  }

  /** @param told once it stands, or comes to nothing */
  whenSettled(told: (stands: boolean) => void): void {
    this.#waiting.add(told)
  }

  /** Only once it stands. @param headers with the pseudo ones @throws what http2 throws where it does not stand any more */
  open(headers: Record<string, string | string[]>): ClientHttp2Stream {
    if (this.#session === null) throw new Error('the connection does not stand yet')
    return this.#session.request(headers, { endStream: false })
  }

  /** The stream's data goes to the taker, and no more to the stream's own readers. */
  tap(stream: ClientHttp2Stream, taker: DataTaker): void {
    const { id } = stream
    if (id === undefined) return
    this.#tapped.tap(id, taker)
    stream.once('close', () => this.#tapped.untap(id))
  }

  untap({ id }: ClientHttp2Stream): void {
    if (id !== undefined) this.#tapped.untap(id)
  }

  /** The engine may send so much more on the stream. */
  giveBack({ id }: ClientHttp2Stream, bytes: number): void {
    if (id !== undefined) this.#tapped.giveBack(id, bytes)
  }

  /** Streams under way go on. */
  close(): void {
    if (this.#session === null) this.#tapped.destroy()
    else this.#session.close()
  }

  #ping(session: ClientHttp2Session): void {
    if (session.destroyed || this.#deadline !== null) return
    this.#deadline = setTimeout(() => {
      this.problem = 'a ping was not answered'
      session.destroy()
    }, this.#config.keepaliveTimeoutMs)
    session.ping(() => {
      if (this.#deadline !== null) clearTimeout(this.#deadline)
      this.#deadline = null
    })
  }
}

export class H2Connections {
  readonly #byUrl = new Map<string, H2Connection>()
  readonly #config: GrpcConfig

  constructor(config: GrpcConfig) {
    this.#config = config
  }

  get maxMessageBytes(): number {
    return this.#config.maxMessageBytes
  }

  /** One that stands or is being made. @throws as `H2Connection` */
  of(destination: Destination): H2Connection {
    const url = baseUrlOf(destination)
    let connection = this.#byUrl.get(url)
    if (connection === undefined || !connection.isOpen) {
      connection = new H2Connection(url, this.#config)
      this.#byUrl.set(url, connection)
    }
    return connection
  }

  /** Closes those that lead to nobody of these; calls under way go on. */
  keepOnly(workers: readonly Destination[]): void {
    const wanted = new Set(workers.map(baseUrlOf))
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
