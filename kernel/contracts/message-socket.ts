/** Sockets whose messages are requests, as plugins see them. */
import type { RequestContext } from './request.ts'
import type { SocketBounds, SocketRouteDefinition } from './socket.ts'

export interface SocketLimits extends SocketBounds {
  /** A socket without messages and without running work is closed with 1000. 0 never. Default 10 minutes. */
  readonly idleMs: number
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
 * A message; as the body of its request, too. A whole reply is sent as one message, text where its content type is, each
 * event of an event stream as a text message with the event's data. Status and headers reach the log and the metrics
 * only. Status 204 ends it without a message.
 */
export interface SocketMessage {
  readonly socket: Socket
  readonly isBinary: boolean
}

export interface MessageSocketDefinition extends Omit<SocketRouteDefinition, 'bounds' | 'open'> {
  /** Default: 16 MiB a message, 1,000 sockets a thread, 16 MiB untaken. */
  readonly limits?: Partial<SocketLimits>
  /** Must end each message with a reply, now or later; what it throws becomes the error reply. */
  readonly onMessage: (ctx: RequestContext, message: SocketMessage) => void | Promise<void>
  readonly onOpen?: (socket: Socket) => void
  /** @param code of RFC 6455 §7.4; 1006 when the connection just ended */
  readonly onClose?: (socket: Socket, code: number) => void
}
