/**
 * WebSockets whose messages are requests: each message runs like a request of its own, within limits, and its response is
 * sent as messages. Pass the result to `host.socket`.
 */
import {
  Interval,
  type MessageSocketDefinition,
  type RequestContext,
  type Socket,
  type SocketConnection,
  type SocketHandler,
  type SocketLimits,
  type SocketRouteDefinition,
} from '#kernel'
import { MessageResponse } from './message-response.ts'

const DEFAULT_LIMITS: SocketLimits = {
  maxMessageBytes: 16_777_216,
  maxOpen: 1_000,
  maxPerTenant: 250,
  idleMs: 600_000,
  maxBufferedBytes: 16_777_216,
  maxRunning: 1,
  maxWaiting: 16,
}
const MAX_IDLE_CHECK_MS = 5_000

/** @source RFC 6455 §7.4.1 */
const NORMAL = 1000
const GOING_AWAY = 1001
const POLICY_VIOLATION = 1008

/** Makes a WebSocket route whose messages are requests, for `host.socket`. */
export function messageSocket(definition: MessageSocketDefinition): SocketRouteDefinition {
  const { path, access, errors, headers, endpoint, requestIdPrefix, protocols } = definition
  const limits = { ...DEFAULT_LIMITS, ...definition.limits }
  const idle = new IdleSockets(limits.idleMs)
  return {
    path,
    access,
    errors,
    headers,
    endpoint,
    requestIdPrefix,
    protocols,
    bounds: limits,
    open: (connection) => new MessageSocket(connection, definition, limits, idle),
  }
}

class MessageSocket implements SocketHandler, Socket {
  readonly #connection: SocketConnection
  readonly #definition: MessageSocketDefinition
  readonly #limits: SocketLimits
  readonly #idle: IdleSockets
  readonly #waiting: { readonly bytes: Buffer; readonly isBinary: boolean }[] = []
  #waitingBytes = 0
  #running = 0
  #lastActiveMs = performance.now()
  /** New messages are ignored. */
  #isClosing = false

  constructor(
    connection: SocketConnection,
    definition: MessageSocketDefinition,
    limits: SocketLimits,
    idle: IdleSockets,
  ) {
    this.#connection = connection
    this.#definition = definition
    this.#limits = limits
    this.#idle = idle
    idle.add(this)
  }

  get request(): RequestContext {
    return this.#connection.request
  }

  get protocol(): string {
    return this.#connection.protocol
  }

  get isOpen(): boolean {
    return this.#connection.isOpen
  }

  /** `performance.now()` of the last activity; null while a message runs. */
  get idleSinceMs(): number | null {
    return this.#running > 0 ? null : this.#lastActiveMs
  }

  send(message: string | Buffer): boolean {
    this.#connection.send(message, typeof message !== 'string')
    return this.#connection.isWritable
  }

  close(code: number, reason = ''): void {
    this.#isClosing = true
    this.#connection.close(code, reason)
  }

  keep(bytes: number): boolean {
    return this.#connection.keep(bytes)
  }

  onOpen(): void {
    this.#definition.onOpen?.(this)
  }

  onMessage(bytes: Buffer, isBinary: boolean): void {
    this.#lastActiveMs = performance.now()
    if (this.#isClosing) return
    const { maxRunning, maxWaiting, maxMessageBytes } = this.#limits
    if (this.#running < maxRunning) {
      this.#run(bytes, isBinary)
      return
    }
    this.#waitingBytes += bytes.length
    if (this.#waiting.length < maxWaiting && this.#waitingBytes <= maxMessageBytes)
      this.#waiting.push({ bytes, isBinary })
    else this.close(POLICY_VIOLATION, 'too many messages are waiting')
  }

  /** Running messages may finish, waiting ones are dropped. */
  goAway(): void {
    this.#isClosing = true
    this.#waiting.length = 0
    if (this.#running === 0) this.close(GOING_AWAY, 'the gateway is shutting down')
  }

  onClose(code: number): void {
    this.#isClosing = true
    this.#waiting.length = 0
    this.#idle.remove(this)
    this.#definition.onClose?.(this, code)
  }

  #run(bytes: Buffer, isBinary: boolean): void {
    this.#running += 1
    const message = { socket: this, isBinary }
    this.#connection.run({
      body: bytes,
      receiver: new MessageResponse(this.#connection, this.#limits.maxBufferedBytes),
      handler: (ctx) => this.#definition.onMessage(ctx, message),
      onEnd: () => this.#ended(),
    })
  }

  #ended(): void {
    this.#running -= 1
    this.#lastActiveMs = performance.now()
    if (!this.isOpen) return
    const next = this.#isClosing ? undefined : this.#waiting.shift()
    if (next !== undefined) {
      this.#waitingBytes -= next.bytes.length
      this.#run(next.bytes, next.isBinary)
    } else if (this.#isClosing) this.goAway()
  }
}

/** Closes the sockets of one route that have been idle for too long. */
class IdleSockets {
  readonly #idleMs: number
  readonly #sockets = new Set<MessageSocket>()
  readonly #interval: Interval

  /** @param idleMs 0 disables the timeout */
  constructor(idleMs: number) {
    this.#idleMs = idleMs
    this.#interval = new Interval(Math.min(MAX_IDLE_CHECK_MS, idleMs / 4), () => this.#closeIdle())
  }

  add(socket: MessageSocket): void {
    if (this.#idleMs === 0) return
    this.#sockets.add(socket)
    this.#interval.start()
  }

  remove(socket: MessageSocket): void {
    this.#sockets.delete(socket)
    if (this.#sockets.size === 0) this.#interval.stop()
  }

  #closeIdle(): void {
    const nowMs = performance.now()
    for (const socket of [...this.#sockets]) {
      const { idleSinceMs } = socket
      if (idleSinceMs !== null && nowMs - idleSinceMs > this.#idleMs) socket.close(NORMAL, 'idle')
    }
  }
}
