/**
 * WebSocket routes: who may open a socket, what may come through it, and how a message becomes a request. Each message is
 * run like a request of its own: request id, hooks, limits, counters, log line, traces; its reply goes back as messages.
 */
import type { RequestContext } from './request.ts'
import type { RouteDefinition } from './route.ts'

export interface SocketLimits {
  /** Larger messages close the socket with 1009. Default 16 MiB. */
  readonly maxMessageBytes: number
  /** Sockets of the route open on one thread; one more is answered 503. Default 1,000. */
  readonly maxOpen: number
  /** A socket without messages and without running work is closed with 1000. 0 never. Default 10 minutes. */
  readonly idleMs: number
  /** What a slow client may leave untaken; more closes the socket. Default 16 MiB. */
  readonly maxBufferedBytes: number
  /** Messages of one socket that run at a time. Default 1. */
  readonly maxRunning: number
  /** Messages of one socket that may wait for their turn; one more closes it with 1008. Default 16. */
  readonly maxWaiting: number
}

/** One open socket. Its own object for as long as it lives: a key for what a plugin keeps beside it. */
export interface Socket {
  /** The request that opened it, for its parameters, headers and identity; its reply is over. */
  readonly request: RequestContext
  /** The subprotocol agreed on; empty when there is none. */
  readonly protocol: string
  readonly isOpen: boolean
  /** Sends text as a text message, bytes as a binary one. @returns false when the client is slow */
  send(message: string | Buffer): boolean
  /** Says goodbye with a code of RFC 6455 §7.4; running work is cancelled. Safe to call twice. */
  close(code: number, reason?: string): void
}

/**
 * A message as a request; its body is the message. A whole reply is sent as one message, text where its content type is,
 * each event of an event stream as a text message with the event's data. Status and headers reach the log and the metrics
 * only. Status 204 ends it without a message.
 */
export interface SocketMessage extends RequestContext {
  readonly socket: Socket
  readonly isBinary: boolean
}

export interface SocketRouteDefinition
  extends Pick<RouteDefinition, 'path' | 'access' | 'errors' | 'headers' | 'endpoint' | 'requestIdPrefix'> {
  /** Subprotocols in the order of preference. A client that offers none of them gets none. */
  readonly protocols?: readonly string[]
  readonly limits?: Partial<SocketLimits>
  /** Must end each message with a reply, now or later; what it throws becomes the error reply. */
  readonly onMessage: (message: SocketMessage) => void | Promise<void>
  readonly onOpen?: (socket: Socket) => void
  /** @param code of RFC 6455 §7.4; 1006 when the connection just ended */
  readonly onClose?: (socket: Socket, code: number) => void
}
