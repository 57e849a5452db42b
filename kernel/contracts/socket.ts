/**
 * WebSocket routes. The kernel checks the request that opens a socket, and runs a message as a request of its own. What a
 * message is, when it runs and how its response is sent is up to the handler of the socket.
 */
import type { RequestContext, RouteDefinition } from './request.ts'

export interface SocketBounds {
  /**
   * A larger message closes the socket with 1009. Unfinished messages are counted by this limit and an eighth: open sockets
   * times this is at most `kernel.http.maxHeldBodyBytes`, and `maxHeldBodyBytesPerTenant` for one tenant.
   */
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
  /**
   * Counts what the handler keeps in memory between messages, in place of what it kept before, as a held body of the tenant until
   * the socket closes. @returns false if the budget has no room: nothing is counted, and the handler must release it
   */
  keep(bytes: number): boolean
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

/** A WebSocket route: its access, bounds and handler. */
export interface SocketRouteDefinition
  extends Pick<RouteDefinition, 'path' | 'access' | 'errors' | 'headers' | 'endpoint' | 'requestIdPrefix'> {
  /** Subprotocols in order of preference. A client that offers none of them gets none. */
  readonly protocols?: readonly string[]
  readonly bounds: SocketBounds
  /** Called when a socket has opened. */
  readonly open: (socket: SocketConnection) => SocketHandler
}

/** Of sockets whose messages are requests. */
export interface SocketLimits extends SocketBounds {
  /** A socket without messages and without running work closes with 1000 after this. 0 disables it. Default 10 minutes. */
  readonly idleMs: number
  /** Messages of one socket that run at the same time. Default 1. */
  readonly maxRunning: number
  /** Messages of one socket that wait to run, together at most `maxMessageBytes`; more closes it with 1008. Default 16. */
  readonly maxWaiting: number
}

/** One open socket. The object stays the same while it is open: a key for what a plugin keeps beside it. */
export interface Socket extends Pick<SocketConnection, 'request' | 'protocol' | 'isOpen' | 'close' | 'keep'> {
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

/** A WebSocket route whose messages are requests; `messageSocket` turns it into a route. */
export interface MessageSocketDefinition extends Omit<SocketRouteDefinition, 'bounds' | 'open'> {
  /** Default: 16 MiB a message, 1,000 sockets a thread, 250 of a tenant, 16 MiB buffered. */
  readonly limits?: Partial<SocketLimits>
  /** Must end each message with a response, now or later. An exception becomes the error response. */
  readonly onMessage: (ctx: RequestContext, message: SocketMessage) => void | Promise<void>
  readonly onOpen?: (socket: Socket) => void
  /** @param code of RFC 6455 §7.4; 1006 when there was no close frame */
  readonly onClose?: (socket: Socket, code: number) => void
}
