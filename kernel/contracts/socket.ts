/**
 * WebSocket routes. The kernel checks the request that opens a socket, and runs a message as a request of its own. What a
 * message is, when it runs and how its response is sent is up to the handler of the socket.
 */
import type { RequestContext } from './request.ts'
import type { RouteDefinition } from './route.ts'

export interface SocketBounds {
  /** A larger message closes the socket with 1009. */
  readonly maxMessageBytes: number
  /** Open sockets of the route per thread; further upgrades get 503. */
  readonly maxOpen: number
  /** Open sockets of the route per tenant and thread; further upgrades get 429. Callers without a key share `maxOpen`. */
  readonly maxPerTenant: number
  /** Most bytes that are buffered for a slow client; more closes the socket. */
  readonly maxBufferedBytes: number
}

/** One open socket. */
export interface SocketConnection {
  /** The request that opened it, for its parameters, headers and identity; its response is complete. */
  readonly request: RequestContext
  /** The negotiated subprotocol; empty when there is none. */
  readonly protocol: string
  readonly isOpen: boolean
  /** False while the client is slow; responses that were paused for it resume without help. */
  readonly isWritable: boolean
  send(message: string | Buffer, isBinary: boolean): void
  /** Closes with a code of RFC 6455 §7.4; running messages are cancelled. Safe to call twice. */
  close(code: number, reason?: string): void
  /** Disconnects at once, without a close frame: for a client that does not read. */
  disconnect(): void
  /** Runs a message like a request: request id, hooks, limits, counters, log line, traces. Never throws. */
  run(message: SocketRun): void
}

/** Receives the response of a request without a connection of its own: of detached work, or of a WebSocket message. */
export interface ResponseReceiver {
  /** Called before any of the body, where the response has a content type. */
  onType(contentType: string): void
  /** @param chunk never empty; its memory may be reused after the call @returns false to pause the response */
  onData(chunk: string | Buffer): boolean
  /** The response is complete. */
  onEnd(): void
  /** The response was cut off. @param isStalled the receiver has not taken what it was given */
  onCut(isStalled: boolean): void
}

/** A message to run. */
export interface SocketRun {
  readonly body: Buffer
  readonly receiver: ResponseReceiver
  /** Called after the `onRequest` hooks. Must end the context with a response, as the handler of a route must. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
  /** The response is complete or given up. */
  readonly onEnd: () => void
}

/** Handles one open socket. Exceptions are logged. */
export interface SocketHandler {
  /** Called before any message. */
  onOpen(): void
  /** A message of more than 16 KiB counts as a held body until the run with it has ended or the socket closes. */
  onMessage(bytes: Buffer, isBinary: boolean): void
  /** @param code of RFC 6455 §7.4; 1006 when there was no close frame */
  onClose(code: number): void
  /** The gateway drains: running messages may finish, then the handler closes the socket. */
  goAway(): void
}

export interface SocketRouteDefinition
  extends Pick<RouteDefinition, 'path' | 'access' | 'errors' | 'headers' | 'endpoint' | 'requestIdPrefix'> {
  /** Subprotocols in order of preference. A client that offers none of them gets none. */
  readonly protocols?: readonly string[]
  readonly bounds: SocketBounds
  /** Called when a socket has opened. */
  readonly open: (socket: SocketConnection) => SocketHandler
}
