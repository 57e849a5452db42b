/** One open WebSocket: passes its messages to its handler, within bounds, and runs them as requests. */
import type { WebSocket } from 'uWebSockets.js'
import type { SocketConnection, SocketHandler, SocketRun } from '../contracts/socket.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { checkEndpoint } from '../upstream/key-scope.ts'
import { UNCOUNTED_BYTES } from './body-memory.ts'
import type { CompiledSocket } from './compiled-route.ts'
import type { HttpContext } from './context.ts'
import { openMemoryRequest } from './memory-request.ts'
import { MemoryResponseSink } from './memory-response-sink.ts'
import { type CopiedHeaders, makeRequestId } from './request-headers.ts'
import { runRequest } from './run-request.ts'
import type { ServerParts } from './server-parts.ts'

/** A response is paused while more than this is buffered for the client. */
const WRITABLE_BYTES = 65_536

/** @source RFC 6455 §7.4.1 */
const POLICY_VIOLATION = 1008
const TOO_BIG = 1009
const NO_CLOSE_FRAME = 1006
/** @source IANA WebSocket Close Code Number Registry */
const TRY_AGAIN_LATER = 1013

export class OpenSocket implements SocketConnection {
  readonly request: HttpContext
  readonly protocol: string
  readonly #server: ServerParts
  readonly #pathValues: readonly string[]
  readonly #compiled: CompiledSocket
  readonly #running = new Set<MemoryResponseSink>()
  /** Owner of held messages in the budget. */
  readonly #owner: string
  #heldBytes = 0
  #keptBytes = 0
  #ws: WebSocket<unknown> | null = null
  #handler: SocketHandler | null = null
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
    this.#owner = request.bodyOwner
    this.#pathValues = compiled.message.paramNames.map((name) => request.rawParam(name))
  }

  get isOpen(): boolean {
    return this.#ws !== null
  }

  get isWritable(): boolean {
    return this.#ws === null || this.#ws.getBufferedAmount() < WRITABLE_BYTES
  }

  send(message: string | Buffer, isBinary: boolean): void {
    // Beyond the route's maxBufferedBytes the library closes the socket, and calls `closed`.
    this.#ws?.send(message, isBinary)
  }

  close(code: number, reason = ''): void {
    // The library calls `closed` before it returns.
    this.#ws?.end(code, reason)
  }

  disconnect(): void {
    this.#ws?.close()
  }

  run(message: SocketRun): void {
    const { request } = this
    const route = this.#compiled.message
    let isRevoked = false
    const onDone = () => {
      this.#running.delete(sink)
      this.#release(message.body.length)
      // Otherwise it would count against its tenant for as long as the client likes.
      if (isRevoked) this.close(POLICY_VIOLATION, 'the credential is no longer valid')
      this.#call(message.onEnd)
    }
    const sink = new MemoryResponseSink(message.receiver, onDone, (error) => this.#logFailure(error))
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
    try {
      // The key or token may have expired or been revoked since the socket was opened.
      if (ctx.identity !== null)
        ctx.identity = this.#compiled.upgrade.auth?.recheck(ctx.identity) ?? ctx.identity
      checkEndpoint(ctx.identity, ctx.route.endpoint)
    } catch (error) {
      isRevoked = error instanceof GatewayError && error.kind === 'unauthorized'
      ctx.fail(error)
      return
    }
    runRequest(ctx)
  }

  keep(bytes: number): boolean {
    const { bodyBudget } = this.#server
    if (this.#keptBytes > 0) bodyBudget.give(this.#owner, this.#keptBytes)
    this.#keptBytes = 0
    if (bytes <= UNCOUNTED_BYTES) return true
    if (!this.isOpen || bodyBudget.take(this.#owner, bytes) !== null) return false
    this.#keptBytes = bytes
    return true
  }

  goAway(): void {
    this.#call(() => this.#handler?.goAway())
  }

  opened(ws: WebSocket<unknown>): void {
    this.#ws = ws
    this.#call(() => {
      this.#handler = this.#compiled.definition.open(this)
    })
    this.#call(() => this.#handler?.onOpen())
  }

  /** @param data memory of the library, valid during the call only */
  received(data: ArrayBuffer, isBinary: boolean): void {
    const { maxMessageBytes } = this.#compiled.definition.bounds
    const bytes = data.byteLength
    if (bytes > maxMessageBytes) this.close(TOO_BIG, `a message has at most ${maxMessageBytes} bytes`)
    else if (!this.#hold(bytes)) this.close(TRY_AGAIN_LATER, 'too many bytes of messages are held')
    else this.#call(() => this.#handler?.onMessage(Buffer.from(new Uint8Array(data)), isBinary))
  }

  /** Counts a message as the body of a request. @returns false if it exceeds the budget */
  #hold(bytes: number): boolean {
    if (bytes <= UNCOUNTED_BYTES) return true
    if (this.#server.bodyBudget.take(this.#owner, bytes) !== null) return false
    this.#heldBytes += bytes
    return true
  }

  #release(bytes: number): void {
    if (bytes <= UNCOUNTED_BYTES || bytes > this.#heldBytes) return
    this.#heldBytes -= bytes
    this.#server.bodyBudget.give(this.#owner, bytes)
  }

  drained(): void {
    const { isWritable } = this
    for (const response of this.#running) response.receiverDrained(isWritable)
  }

  closed(code: number): void {
    this.#ws = null
    for (const response of [...this.#running]) response.cancel()
    // Messages that were not run.
    this.#release(this.#heldBytes)
    this.keep(0)
    this.#onClosed(this)
    this.#call(() => this.#handler?.onClose(code === 0 ? NO_CLOSE_FRAME : code))
  }

  /** Catches exceptions of a plugin, which would end the thread. */
  #call(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#logFailure(error)
    }
  }

  #logFailure(err: unknown): void {
    this.#server.log.error({ err, path: this.request.path }, 'socket handler failed')
  }
}

/** Hooks may change the headers of one message. */
function copyOf(headers: CopiedHeaders): CopiedHeaders {
  return { ...headers, kept: [...headers.kept], forwarded: [...headers.forwarded] }
}
