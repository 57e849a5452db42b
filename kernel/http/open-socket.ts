/** One open socket: hands its messages to its taker, within bounds, and runs what the taker makes of them. */
import type { WebSocket } from 'uWebSockets.js'
import type { SocketConnection, SocketRun, SocketTaker } from '../contracts/socket.ts'
import type { CompiledSocket } from './compiled-socket.ts'
import type { HttpContext } from './context.ts'
import { openMemoryRequest } from './memory-request.ts'
import { MemoryResponseSink } from './memory-response-sink.ts'
import type { CopiedHeaders } from './request-headers.ts'
import { makeRequestId } from './request-id.ts'
import { runRequest } from './run-request.ts'
import type { ServerParts } from './server-parts.ts'

/** A reply waits while more than this is buffered for the client. */
const WRITABLE_BYTES = 65_536

/** @source RFC 6455 §7.4.1 */
const TOO_BIG = 1009
const NO_CLOSE = 1006

export class OpenSocket implements SocketConnection {
  readonly request: HttpContext
  readonly protocol: string
  readonly #server: ServerParts
  readonly #pathValues: readonly string[]
  readonly #compiled: CompiledSocket
  readonly #running = new Set<MemoryResponseSink>()
  #ws: WebSocket<unknown> | null = null
  #taker: SocketTaker | null = null
  readonly #onClosed: (socket: OpenSocket) => void

  constructor(
    server: ServerParts,
    compiled: CompiledSocket,
    request: HttpContext,
    protocol: string,
    onClosed: (socket: OpenSocket) => void,
  ) {
    this.#onClosed = onClosed
    this.#server = server
    this.#compiled = compiled
    this.request = request
    this.protocol = protocol
    this.#pathValues = compiled.message.paramNames.map((name) => request.rawParam(name))
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

  disconnect(): void {
    this.#ws?.close()
  }

  run(message: SocketRun): void {
    const { request } = this
    const route = this.#compiled.message
    const sink: MemoryResponseSink = new MemoryResponseSink(message.receiver, () => {
      this.#running.delete(sink)
      this.#tell(message.onEnd)
    })
    this.#running.add(sink)
    const ctx = openMemoryRequest(this.#server, route, sink, {
      path: request.path,
      query: request.query,
      pathValues: this.#pathValues,
      headers: copyOf(request.headers),
      requestId: makeRequestId(route.requestIdPrefix),
      identity: request.identity,
      clientAddress: request.clientAddress,
      body: message.body,
      handler: message.handler,
    })
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
    for (const response of this.#running) response.receiverDrained(isWritable)
  }

  closed(code: number): void {
    this.#ws = null
    for (const response of [...this.#running]) response.cancel()
    this.#onClosed(this)
    this.#tell(() => this.#taker?.onClose(code === 0 ? NO_CLOSE : code))
  }

  /** What a plugin throws has no caller here, and must not end the thread. */
  #tell(run: () => void): void {
    try {
      run()
    } catch (err) {
      this.#server.log.error({ err, path: this.request.path }, 'the taker of a socket threw')
    }
  }
}

/** Hooks may change the headers of one message. */
function copyOf(headers: CopiedHeaders): CopiedHeaders {
  return { ...headers, kept: [...headers.kept], forwarded: [...headers.forwarded] }
}
