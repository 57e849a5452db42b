/** One open socket: hands its messages to its taker, within bounds, and runs what the taker makes of them. */
import type { WebSocket } from 'uWebSockets.js'
import type { SocketConnection, SocketRun, SocketTaker } from '../contracts/socket.ts'
import type { CompiledSocket } from './compiled-socket.ts'
import type { HttpContext } from './context.ts'
import { MessageContext, type MessageOrigin } from './message-context.ts'
import { runRequest } from './run.ts'
import type { ServerParts } from './server-parts.ts'

/** A reply waits while more than this is buffered for the client. */
const WRITABLE_BYTES = 65_536

/** @source RFC 6455 §7.4.1 */
const TOO_BIG = 1009
const NO_CLOSE = 1006

/** The server as a socket needs it. */
export interface SocketHome extends ServerParts {
  /** Counts a message as a request that is open. */
  requestBegan(ctx: HttpContext): void
  socketClosed(connection: OpenSocket): void
}

export class OpenSocket implements SocketConnection, MessageOrigin {
  readonly request: HttpContext
  readonly protocol: string
  readonly server: SocketHome
  readonly pathValues: readonly string[]
  readonly #compiled: CompiledSocket
  readonly #running = new Set<MessageContext>()
  #ws: WebSocket<unknown> | null = null
  #taker: SocketTaker | null = null

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

  get isOpen(): boolean {
    return this.#ws !== null
  }

  get isWritable(): boolean {
    return this.#ws === null || this.#ws.getBufferedAmount() < WRITABLE_BYTES
  }

  send(message: string | Buffer, isBinary: boolean): void {
    // More than a slow client may leave untaken: the library closes the socket, which is told as usual.
    this.#ws?.send(message, isBinary)
  }

  close(code: number, reason = ''): void {
    // The library tells of the close before it returns.
    this.#ws?.end(code, reason)
  }

  cut(): void {
    this.#ws?.close()
  }

  run(message: SocketRun): void {
    const ctx = new MessageContext(this, message)
    this.#running.add(ctx)
    this.server.requestBegan(ctx)
    runRequest(ctx)
  }

  goAway(): void {
    this.#tell(() => this.#taker?.goAway())
  }

  opened(ws: WebSocket<unknown>): void {
    this.#ws = ws
    this.#tell(() => {
      this.#taker = this.#compiled.definition.open(this)
    })
    this.#tell(() => this.#taker?.onOpen())
  }

  /** @param data the library's memory, for the time of the call only */
  received(data: ArrayBuffer, isBinary: boolean): void {
    const { maxMessageBytes } = this.#compiled.definition.bounds
    if (data.byteLength > maxMessageBytes) this.close(TOO_BIG, `messages may have ${maxMessageBytes} bytes`)
    else this.#tell(() => this.#taker?.onMessage(Buffer.from(new Uint8Array(data)), isBinary))
  }

  drained(): void {
    const { isWritable } = this
    for (const message of this.#running) {
      // Reading a part is progress too: the client is slow, not gone.
      message.takings++
      if (isWritable) message.drained()
    }
  }

  closed(code: number): void {
    this.#ws = null
    for (const message of [...this.#running]) message.cancel()
    this.server.socketClosed(this)
    this.#tell(() => this.#taker?.onClose(code === 0 ? NO_CLOSE : code))
  }

  ended(ctx: MessageContext): void {
    this.#running.delete(ctx)
    this.#tell(ctx.message.onEnd)
  }

  /** What a plugin throws has no caller here, and must not end the thread. */
  #tell(run: () => void): void {
    try {
      run()
    } catch (err) {
      this.server.log.error({ err, path: this.request.path }, 'the taker of a socket threw')
    }
  }
}
