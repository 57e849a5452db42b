/** One HTTP/2 connection to a worker, which is pinged while it stands and told apart from one that is coming to its end. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { Socket } from 'node:net'
import type { GrpcConfig } from '../config.ts'
import type { DataTaker } from './data-frames.ts'
import { openSocket } from './open-socket.ts'
import { TappedSocket } from './tapped-socket.ts'

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
