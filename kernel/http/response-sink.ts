/**
 * Destination of the response of one request. Two implementations: `http-response-sink.ts` writes to a client connection,
 * `memory-response-sink.ts` to a receiver in this process (a WebSocket message, detached work). @hot
 */
import type { ExtraHeaders } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'

const LINE_FEED = 0x0a
/** Status for metrics and logs if the client disconnected before a response; never sent. */
const CLIENT_CLOSED_REQUEST = 499

/** The request that the response belongs to. */
export interface ResponseOwner {
  /** The client has taken what was written. */
  onResponseDrain(): void
  /** The response has ended. Called exactly once. */
  onResponseDone(): void
}

export abstract class ResponseSink {
  /** Status sent to the client; 0 until then. */
  status = 0
  bytesOut = 0
  /** `performance.now()` at the first byte of the head; 0 until then. */
  firstByteAtMs = 0
  /** The client disconnected before the response was complete. */
  isAborted = false
  isDone = false
  /** A streamed response has begun. */
  isStreaming = false
  isEventStream = false
  /** False while the client has not taken what was written. */
  isWritable = true
  /** Number of times that the client has taken data while the response waited: the progress of a slow client. */
  drains = 0
  /** The response closes the connection, if it has one. */
  closesConnection = false
  /** The end of the stream closes the connection, if there is one, without completing the response. */
  isCutAtEnd = false
  /** Sent as `x-weir-model`; null for none. */
  servedModel: string | null = null
  protected lastByte = LINE_FEED
  protected lastButOne = LINE_FEED
  #owner: ResponseOwner | null = null

  /** Call before anything is written. */
  attach(owner: ResponseOwner): void {
    this.#owner = owner
  }

  /**
   * Sends a complete response. The memory of `body` may be reused after the call.
   * @param contentType sent besides the headers; null when they have it
   */
  abstract send(
    status: number,
    contentType: string | null,
    headers: ExtraHeaders | null,
    body: string | Buffer,
  ): void
  /** Begins a streamed response; the head leaves with the first chunk. */
  abstract start(status: number, headers: HeaderList, isEventStream: boolean): void
  /**
   * Writes a chunk of a streamed response; its memory may be reused after the call. Ignored after the end.
   * @returns false if the client is slow: wait for `onResponseDrain`
   */
  abstract write(chunk: Buffer | string): boolean
  /** @param last written before the end */
  abstract end(last: Buffer | string): void
  /** Disconnects the client at once, whatever was sent. Does nothing after the end. */
  abstract destroy(): void
  /** Restarts the inactivity timeout of the server library, which does not account for slow workers and clients. */
  abstract keepOpen(): void
  /** IP address of the peer; empty once the connection is closed. */
  abstract remoteAddress(): string

  /** Ends the current event, so that another may follow; empty between two events. */
  get eventBorder(): string {
    if (this.lastByte !== LINE_FEED) return '\n\n'
    return this.lastButOne === LINE_FEED ? '' : '\n'
  }

  protected countChunk(chunk: string | Buffer): void {
    const { length } = chunk
    this.bytesOut += typeof chunk === 'string' ? Buffer.byteLength(chunk) : length
    this.lastButOne = length > 1 ? byteAt(chunk, length - 2) : this.lastByte
    this.lastByte = byteAt(chunk, length - 1)
  }

  /** The client has taken what was written. */
  protected drained(): void {
    this.drains++
    this.isWritable = true
    this.#owner?.onResponseDrain()
  }

  protected clientLeft(): void {
    if (this.isDone) return
    this.isAborted = true
    if (this.status === 0) this.status = CLIENT_CLOSED_REQUEST
    this.done()
  }

  protected done(): void {
    if (this.isDone) return
    this.isDone = true
    this.#owner?.onResponseDone()
  }
}

/** @source RFC 9110 §15.3.5, §15.4.5 */
export function hasNoBody(status: number): boolean {
  return status === 204 || status === 304
}

function byteAt(chunk: string | Buffer, index: number): number {
  return typeof chunk === 'string' ? chunk.charCodeAt(index) : chunk[index]
}
