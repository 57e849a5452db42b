/** One open socket: takes its messages in turn, within limits, and sends what their replies say. */
import type { WebSocket } from 'uWebSockets.js'
import type { Socket } from '../contracts/socket.ts'
import type { CompiledSocket } from './compiled-socket.ts'
import type { HttpContext } from './context.ts'
import { MessageContext, type MessageOrigin } from './message-context.ts'
import { runRequest } from './run.ts'
import type { ServerParts } from './server-parts.ts'
import { type MessageSink, SocketReply } from './socket-reply.ts'

/** A reply waits while more than this is buffered for the client. */
const WRITABLE_BYTES = 65_536

/** @source RFC 6455 §7.4.1 */
const GOING_AWAY = 1001
const POLICY = 1008
const TOO_BIG = 1009
const NO_CLOSE = 1006

/** The server as a socket needs it. */
export interface SocketHome extends ServerParts {
  /** Counts a message as a request that is open. */
  requestBegan(ctx: HttpContext): void
  socketClosed(connection: SocketConnection): void
}

export class SocketConnection implements Socket, MessageSink, MessageOrigin {
  readonly request: HttpContext
  readonly protocol: string
  readonly server: SocketHome
  readonly socket: Socket = this
  readonly pathValues: readonly string[]
  lastActiveMs = performance.now()
  readonly #compiled: CompiledSocket
  #ws: WebSocket<unknown> | null = null
  readonly #running = new Set<MessageContext>()
  readonly #waiting: { readonly bytes: Buffer; readonly isBinary: boolean }[] = []
  /** No message is taken any more. */
  #isGoing = false

  constructor(server: SocketHome, compiled: CompiledSocket, request: HttpContext, protocol: string) {
    this.server = server
    this.#compiled = compiled
    this.request = request
    this.protocol = protocol
    this.pathValues = compiled.message.paramNames.map((name) => request.rawParam(name))
  }

  get route() {
    return this.#compiled.message
  }

  get limits() {
    return this.#compiled.limits
  }

  get maxBufferedBytes(): number {
    return this.limits.maxBufferedBytes
  }

  get isOpen(): boolean {
    return this.#ws !== null
  }

  get isIdle(): boolean {
    return this.#running.size === 0
  }

  get isWritable(): boolean {
    return this.#ws === null || this.#ws.getBufferedAmount() < WRITABLE_BYTES
  }

  send(message: string | Buffer): boolean {
    return this.sendMessage(message, typeof message !== 'string')
  }

  sendMessage(message: string | Buffer, isBinary: boolean): boolean {
    // More than a slow client may leave untaken: the library closes the socket, which is told as usual.
    this.#ws?.send(message, isBinary)
    return this.isWritable
  }

  close(code: number, reason = ''): void {
    this.#isGoing = true
    // The library tells of the close before it returns.
    this.#ws?.end(code, reason)
  }

  /** Draining: what runs may finish, what waits is not begun. */
  goAway(): void {
    this.#isGoing = true
    this.#waiting.length = 0
    if (this.#running.size === 0) this.close(GOING_AWAY, 'the gateway is shutting down')
  }

  opened(ws: WebSocket<unknown>): void {
    this.#ws = ws
    this.#tell('onOpen', () => this.#compiled.definition.onOpen?.(this))
  }

  /** @param data the library's memory, for the time of the call only */
  received(data: ArrayBuffer, isBinary: boolean): void {
    this.lastActiveMs = performance.now()
    if (this.#isGoing) return
    const { maxMessageBytes, maxRunning, maxWaiting } = this.limits
    if (data.byteLength > maxMessageBytes) {
      this.close(TOO_BIG, `messages may have ${maxMessageBytes} bytes`)
      return
    }
    const bytes = Buffer.from(new Uint8Array(data))
    if (this.#running.size < maxRunning) this.#run(bytes, isBinary)
    else if (this.#waiting.length < maxWaiting) this.#waiting.push({ bytes, isBinary })
    else this.close(POLICY, 'too many messages are waiting')
  }

  drained(): void {
    if (!this.isWritable) return
    for (const message of this.#running) message.reply.drained()
  }

  closed(code: number): void {
    this.#ws = null
    this.#isGoing = true
    this.#waiting.length = 0
    for (const message of [...this.#running]) message.reply.aborted()
    this.server.socketClosed(this)
    this.#tell('onClose', () => this.#compiled.definition.onClose?.(this, code === 0 ? NO_CLOSE : code))
  }

  ended(message: MessageContext): void {
    this.#running.delete(message)
    this.lastActiveMs = performance.now()
    if (this.#ws === null) return
    const next = this.#isGoing ? undefined : this.#waiting.shift()
    if (next !== undefined) this.#run(next.bytes, next.isBinary)
    else if (this.#isGoing) this.goAway()
  }

  #run(bytes: Buffer, isBinary: boolean): void {
    const message = new MessageContext(this, new SocketReply(this), bytes, isBinary)
    this.#running.add(message)
    this.server.requestBegan(message)
    runRequest(message)
  }

  /** What a plugin throws has no caller here, and must not end the thread. */
  #tell(what: string, run: () => void): void {
    try {
      run()
    } catch (err) {
      this.server.log.error({ err, path: this.request.path }, `${what} of a socket route threw`)
    }
  }
}
