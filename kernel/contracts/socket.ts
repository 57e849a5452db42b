/**
 * WebSocket routes: who may open a socket, and who takes what comes through it. The kernel checks the request that asks for
 * one, and runs a message as a request of its own; what a message is, when it runs and how its reply goes back is up to
 * whoever takes it.
 */
import type { RequestContext } from './request.ts'
import type { RouteDefinition } from './route.ts'

export interface SocketBounds {
  /** Larger messages close the socket with 1009. */
  readonly maxMessageBytes: number
  /** Sockets of the route open on one thread; one more is answered 503. */
  readonly maxOpen: number
  /** What a slow client may leave untaken; more closes the socket. */
  readonly maxBufferedBytes: number
}

/** One open socket, as its taker has it. */
export interface SocketConnection {
  /** The request that opened it, for its parameters, headers and identity; its reply is over. */
  readonly request: RequestContext
  /** The subprotocol agreed on; empty when there is none. */
  readonly protocol: string
  readonly isOpen: boolean
  /** False while the client is slow; replies that wait for it go on by themselves. */
  readonly isWritable: boolean
  send(message: string | Buffer, isBinary: boolean): void
  /** Says goodbye with a code of RFC 6455 §7.4; what runs is cancelled. Safe to call twice. */
  close(code: number, reason?: string): void
  /** Disconnects at once, without a close frame: for a client that does not read. */
  disconnect(): void
  /** Runs a message like a request: request id, hooks, limits, counters, log line, traces. Never throws. */
  run(message: SocketRun): void
}

/** Receives the response of a request without a connection of its own: of detached work, or of a WebSocket message. */
export interface ResponseReceiver {
  /** Before any of the body, where the response has a content type. */
  onType(contentType: string): void
  /** The memory of `chunk` may be reused after the call. @returns false to pause the response */
  onData(chunk: string | Buffer): boolean
  /** The response is complete. */
  onEnd(): void
  /** The response was cut off. @param isStalled the receiver has not taken what it was given */
  onCut(isStalled: boolean): void
}

/** A message that is run. */
export interface SocketRun {
  readonly body: Buffer
  readonly receiver: ResponseReceiver
  /** Once the hooks have let it in. Must end the context with a reply, as a handler must. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
  /** Its reply is whole or given up. */
  readonly onEnd: () => void
}

/** What it throws is logged, and is nobody else's. */
export interface SocketTaker {
  /** Before any message. */
  onOpen(): void
  onMessage(bytes: Buffer, isBinary: boolean): void
  /** @param code of RFC 6455 §7.4; 1006 when the connection just ended */
  onClose(code: number): void
  /** The gateway drains: what runs may finish, then the taker closes the socket. */
  goAway(): void
}

export interface SocketRouteDefinition
  extends Pick<RouteDefinition, 'path' | 'access' | 'errors' | 'headers' | 'endpoint' | 'requestIdPrefix'> {
  /** Subprotocols in the order of preference. A client that offers none of them gets none. */
  readonly protocols?: readonly string[]
  readonly bounds: SocketBounds
  /** A socket is open. */
  readonly open: (socket: SocketConnection) => SocketTaker
}
