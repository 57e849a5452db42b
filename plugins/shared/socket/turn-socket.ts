/** One open socket whose messages are requests: takes them in turn, within limits. */
import type {
  MessageSocketDefinition,
  RequestContext,
  Socket,
  SocketConnection,
  SocketLimits,
  SocketTaker,
} from '#kernel'
import type { IdleSocket, IdleWatch } from './idle-watch.ts'
import { MessageReply, type MessageSink } from './message-reply.ts'

/** @source RFC 6455 §7.4.1 */
const GOING_AWAY = 1001
const POLICY = 1008

export class TurnSocket implements SocketTaker, Socket, MessageSink, IdleSocket {
  readonly #connection: SocketConnection
  readonly #definition: MessageSocketDefinition
  readonly #limits: SocketLimits
  readonly #idle: IdleWatch
  readonly #waiting: { readonly bytes: Buffer; readonly isBinary: boolean }[] = []
  #running = 0
  #lastActiveMs = performance.now()
  /** No message is taken any more. */
  #isGoing = false

  constructor(
    connection: SocketConnection,
    definition: MessageSocketDefinition,
    limits: SocketLimits,
    idle: IdleWatch,
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

  get isWritable(): boolean {
    return this.#connection.isWritable
  }

  get maxBufferedBytes(): number {
    return this.#limits.maxBufferedBytes
  }

  get idleSinceMs(): number | null {
    return this.#running > 0 ? null : this.#lastActiveMs
  }

  send(message: string | Buffer, isBinary = typeof message !== 'string'): boolean {
    this.#connection.send(message, isBinary)
    return this.isWritable
  }

  close(code: number, reason = ''): void {
    this.#isGoing = true
    this.#connection.close(code, reason)
  }

  disconnect(): void {
    this.#isGoing = true
    this.#connection.disconnect()
  }

  onOpen(): void {
    this.#definition.onOpen?.(this)
  }

  onMessage(bytes: Buffer, isBinary: boolean): void {
    this.#lastActiveMs = performance.now()
    if (this.#isGoing) return
    const { maxRunning, maxWaiting } = this.#limits
    if (this.#running < maxRunning) this.#run(bytes, isBinary)
    else if (this.#waiting.length < maxWaiting) this.#waiting.push({ bytes, isBinary })
    else this.close(POLICY, 'too many messages are waiting')
  }

  /** What runs may finish, what waits is not begun. */
  goAway(): void {
    this.#isGoing = true
    this.#waiting.length = 0
    if (this.#running === 0) this.close(GOING_AWAY, 'the gateway is shutting down')
  }

  onClose(code: number): void {
    this.#isGoing = true
    this.#waiting.length = 0
    this.#idle.remove(this)
    this.#definition.onClose?.(this, code)
  }

  #run(bytes: Buffer, isBinary: boolean): void {
    this.#running += 1
    const message = { socket: this, isBinary }
    this.#connection.run({
      body: bytes,
      receiver: new MessageReply(this),
      handler: (ctx) => this.#definition.onMessage(ctx, message),
      onEnd: () => this.#ended(),
    })
  }

  #ended(): void {
    this.#running -= 1
    this.#lastActiveMs = performance.now()
    if (!this.isOpen) return
    const next = this.#isGoing ? undefined : this.#waiting.shift()
    if (next !== undefined) this.#run(next.bytes, next.isBinary)
    else if (this.#isGoing) this.goAway()
  }
}
