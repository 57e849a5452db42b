/** WebSockets whose messages are requests. */
import type { RequestContext } from './request.ts'
import type { SocketBounds, SocketConnection, SocketRouteDefinition } from './socket.ts'

export interface SocketLimits extends SocketBounds {
  /** A socket without messages and without running work closes with 1000 after this. 0 disables it. Default 10 minutes. */
  readonly idleMs: number
  /** Messages of one socket that run at the same time. Default 1. */
  readonly maxRunning: number
  /** Messages of one socket that wait to run, together at most `maxMessageBytes`; more closes it with 1008. Default 16. */
  readonly maxWaiting: number
}

/** One open socket. The object stays the same while it is open: a key for what a plugin keeps beside it. */
export interface Socket extends Pick<SocketConnection, 'request' | 'protocol' | 'isOpen' | 'close'> {
  /** Sends text as a text message, bytes as a binary one. @returns false when the client is slow */
  send(message: string | Buffer): boolean
}

/**
 * A message, which is also the body of its request. A complete response is sent as one message, text where its content
 * type is text or JSON; of an event stream the data of each event is a text message; of any other stream each chunk is one.
 * Status and headers appear in the log and the metrics only. Status 204 ends it without a message.
 */
export interface SocketMessage {
  readonly socket: Socket
  readonly isBinary: boolean
}

export interface MessageSocketDefinition extends Omit<SocketRouteDefinition, 'bounds' | 'open'> {
  /** Default: 16 MiB a message, 1,000 sockets a thread, 250 of a tenant, 16 MiB buffered. */
  readonly limits?: Partial<SocketLimits>
  /** Must end each message with a response, now or later. An exception becomes the error response. */
  readonly onMessage: (ctx: RequestContext, message: SocketMessage) => void | Promise<void>
  readonly onOpen?: (socket: Socket) => void
  /** @param code of RFC 6455 §7.4; 1006 when there was no close frame */
  readonly onClose?: (socket: Socket, code: number) => void
}
