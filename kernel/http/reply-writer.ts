/**
 * Writes one reply to the client: the only place that touches the server library's response object, and the upper half
 * of a request context. What the request was is in `context.ts`, what hooks make of the reply in `hooked-reply.ts`. @hot
 */
import type { SinkListener } from '../contracts/reply-sink.ts'
import type { ReplyHeaders } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { canonicalAddress } from '../wire/canonical-address.ts'
import type { HeartbeatTarget } from './heartbeat.ts'
import { type CopiedHeaders, headerValue } from './request-headers.ts'
import type { ServerParts } from './server-parts.ts'
import { statusLine } from './status-line.ts'

const EMPTY = Buffer.alloc(0)
/** On every event stream: nginx holds a response back in its buffers otherwise. @source nginx, proxy_buffering */
const PROXY_BUFFERING = 'x-accel-buffering'
const LINE_FEED = 0x0a
/**
 * What one cork may hold besides the frame of a chunk and the end of a stream. Beyond its buffer of 16 KiB the server
 * library sends what it holds first, and drops the rest without a word when the system takes nothing of that. @source docs/decisions/0007-one-write-per-cork.md
 */
const MAX_CORKED_BYTES = 16_368
/** The same beside a head. */
const MAX_BYTES_BESIDE_HEAD = 8_192
/** No UTF-16 unit of a string takes more. */
const MAX_UTF8_BYTES = 3
/** Size of the read buffer of `upstream`, whose bytes the relay sends without a copy of its own. */
const READ_BUFFER_BYTES = 65_536
const IPV4_BYTES = 4
/** Status noted for a request whose client left before an answer; never sent. */
const CLIENT_CLOSED_REQUEST = 499

/** What the writer needs of the server library's response, and of what stands in for it without a connection. */
export interface ReplyPort {
  cork(write: () => void): unknown
  writeStatus(status: string): unknown
  writeHeader(name: string, value: string): unknown
  write(chunk: string | Buffer): boolean
  end(body?: string | Buffer, closesConnection?: boolean): unknown
  endWithoutBody(length?: number, closesConnection?: boolean): unknown
  tryEnd(body: string | Buffer, length: number): [isTaken: boolean, isWhole: boolean]
  onWritable(handler: (offset: number) => boolean): unknown
  onAborted(handler: () => void): unknown
  close(): unknown
  pause(): void
  resume(): void
  getRemoteAddress(): ArrayBuffer
  getRemoteAddressAsText(): ArrayBuffer
}

export abstract class ReplyWriter implements HeartbeatTarget {
  readonly server: ServerParts
  readonly method: string
  readonly headers: CopiedHeaders
  readonly requestId: string
  status = 0
  bytesOut = 0
  firstByteAtMs = 0
  isAborted = false
  isDone = false
  /** How often the client has taken what was waiting for it. */
  takings = 0
  /** The reply closes the connection. */
  closesConnection = false

  readonly #res: ReplyPort
  #listener: SinkListener | null = null
  #isSendingInSteps = false

  // Streamed replies only.
  #isStreaming = false
  #isEventStream = false
  #isHeadSent = false
  #streamHeaders: HeaderList | null = null
  #chunk: string | Buffer = EMPTY
  #isWritable = true
  #watchesDrain = false
  #lastByte = LINE_FEED
  #lastButOne = LINE_FEED
  #writeCorked: (() => void) | null = null
  lastWriteMs = 0
  heartbeatNext: HeartbeatTarget | null = null
  heartbeatPrevious: HeartbeatTarget | null = null

  constructor(
    server: ServerParts,
    res: ReplyPort,
    method: string,
    headers: CopiedHeaders,
    requestId: string,
  ) {
    this.server = server
    this.#res = res
    this.method = method
    this.headers = headers
    this.requestId = requestId
    res.onAborted(() => this.#clientLeft())
  }

  /** The reply is whole or given up: called exactly once. */
  protected abstract finished(): void

  get #closesConnection(): boolean {
    return this.closesConnection || this.server.closesConnections
  }

  /** A streamed reply has begun. */
  get isStreaming(): boolean {
    return this.#isStreaming
  }

  get isEventStream(): boolean {
    return this.#isEventStream
  }

  /** The client has not taken what was written. */
  get isUntaken(): boolean {
    return this.#isSendingInSteps || (this.#isStreaming && !this.#isWritable)
  }

  /** The server library's patience with this client begins anew: it cuts connections after some seconds of its own. */
  keepOpen(): void {
    if (this.isDone) return
    this.#res.pause()
    this.#res.resume()
  }

  /** Address of the connection's other end; the library knows it only while the reply is open. */
  protected remoteAddress(): string {
    if (this.isDone) return ''
    const bytes = new Uint8Array(this.#res.getRemoteAddress())
    // Of an IPv4 address the text is made in half of the time here: 2 µs in place of 5.
    return bytes.length === IPV4_BYTES
      ? `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
      : canonicalAddress(Buffer.from(this.#res.getRemoteAddressAsText()).toString('latin1'))
  }

  setListener(listener: SinkListener | null): void {
    this.#listener = listener
  }

  protected get listener(): SinkListener | null {
    return this.#listener
  }

  /** The whole reply at once. @param contentType written besides the headers; null when they have it */
  writeWhole(
    status: number,
    contentType: string | null,
    headers: ReplyHeaders | null,
    body: string | Buffer,
  ): void {
    if (this.isDone || this.#isSendingInSteps) return
    const res = this.#res
    this.status = status
    this.firstByteAtMs = performance.now()
    this.bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    res.cork(() => {
      res.writeStatus(statusLine(status))
      this.#writeOwnHeaders()
      if (contentType !== null) res.writeHeader('content-type', contentType)
      if (headers !== null)
        for (let i = 0; i < headers.length; i += 2) res.writeHeader(headers[i], headers[i + 1])
      if (this.method === 'HEAD') this.#endWithoutBody(this.bytesOut)
      else if (hasNoBody(status)) this.#endWithoutBody(null)
      else if (this.bytesOut > MAX_BYTES_BESIDE_HEAD)
        this.#sendInSteps(typeof body === 'string' ? Buffer.from(body) : body)
      else res.end(body, this.#closesConnection)
    })
    if (!this.#isSendingInSteps) this.#done()
  }

  /** A large body goes out as the client takes it: the request lasts as long, also for a shutdown that waits for it. */
  #sendInSteps(body: Buffer): void {
    const res = this.#res
    if (this.#closesConnection) res.writeHeader('connection', 'close')
    const [, isWhole] = res.tryEnd(body, body.length)
    if (isWhole) return
    this.#isSendingInSteps = true
    const kept = body.length > READ_BUFFER_BYTES ? body : Buffer.from(body)
    res.onWritable((sentBytes) => {
      this.takings++
      const [isTaken, isNowWhole] = res.tryEnd(kept.subarray(sentBytes), kept.length)
      if (isNowWhole && !this.isDone) this.#done()
      return isTaken
    })
  }

  /**
   * Given a length, the library never takes the response for ended, and cuts the connection at the next request.
   * So it is told one only when it is to close anyway. @param length null when it is not known or there is none
   */
  #endWithoutBody(length: number | null): void {
    const res = this.#res
    this.bytesOut = 0
    if (length !== null && this.#closesConnection) {
      res.endWithoutBody(length, true)
      return
    }
    if (length !== null) res.writeHeader('content-length', String(length))
    if (this.#closesConnection) res.writeHeader('connection', 'close')
    res.endWithoutBody()
  }

  /** 200 without a body and with nothing but the given headers. */
  sendPreflight(headers: ReplyHeaders): void {
    const res = this.#res
    this.status = 200
    res.cork(() => {
      res.writeStatus(statusLine(200))
      res.writeHeader('x-request-id', this.requestId)
      for (let i = 0; i < headers.length; i += 2) res.writeHeader(headers[i], headers[i + 1])
      res.end(EMPTY, this.#closesConnection)
    })
    this.#done()
  }

  /** Hands the connection over to another protocol: nothing is written here afterwards. */
  switchProtocols(upgrade: () => void): void {
    if (this.isDone) return
    this.status = 101
    this.firstByteAtMs = performance.now()
    this.#res.cork(upgrade)
    this.#done()
  }

  #writeOwnHeaders(): void {
    const res = this.#res
    res.writeHeader('x-request-id', this.requestId)
    const origin = headerValue(this.headers.kept, 'origin')
    if (origin !== undefined) {
      const cors = this.server.cors.replyHeaders(origin)
      for (let i = 0; i < cors.length; i += 2) res.writeHeader(cors[i], cors[i + 1])
    }
  }

  /** A reply to HEAD, and one whose status has no body, ends with its head, however long the body would go on. */
  #sendHeadOnly(): void {
    this.#res.cork(() => {
      this.#writeStreamHead()
      this.#endWithoutBody(null)
    })
    this.#done()
  }

  /** Begins a streamed reply; the head leaves with the first chunk. */
  openStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.isDone) return
    this.status = status
    this.#isStreaming = true
    this.#isEventStream = isEventStream
    this.#streamHeaders = headers
    if (this.method === 'HEAD' || hasNoBody(status)) {
      this.#sendHeadOnly()
      return
    }
    this.#writeCorked = () => this.#writeCorkedChunk()
    if (isEventStream) this.server.heartbeats.add(this)
  }

  /**
   * One write per cork, which it fits. bench: relay-sse
   * @returns false when the client is slow: the listener's onClientDrain tells when to go on
   */
  writeChunk(chunk: Buffer | string): boolean {
    // After the end there is nothing to wait for.
    if (this.isDone) return true
    if (chunk.length === 0) return this.#isWritable
    if (this.#fitsCork(chunk)) this.#writeInCork(chunk)
    else this.#writePieces(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    if (!this.#isWritable && !this.#watchesDrain) this.#watchDrain()
    return this.#isWritable
  }

  get #corkRoom(): number {
    return this.#isHeadSent ? MAX_CORKED_BYTES : MAX_BYTES_BESIDE_HEAD
  }

  #fitsCork(chunk: Buffer | string): boolean {
    return (typeof chunk === 'string' ? chunk.length * MAX_UTF8_BYTES : chunk.length) <= this.#corkRoom
  }

  #writePieces(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      const end = at + this.#corkRoom
      this.#writeInCork(bytes.subarray(at, end))
      at = end
    }
  }

  #writeInCork(chunk: Buffer | string): void {
    this.#chunk = chunk
    this.#res.cork(this.#writeCorked as () => void)
  }

  #writeCorkedChunk(): void {
    const chunk = this.#chunk
    if (!this.#isHeadSent) {
      this.#writeStreamHead()
      // The library cannot close after a stream; a client that is told to does.
      if (this.#closesConnection) this.#res.writeHeader('connection', 'close')
    }
    this.#isWritable = this.#res.write(chunk)
    this.#chunk = EMPTY
    const length = chunk.length
    this.bytesOut += typeof chunk === 'string' ? Buffer.byteLength(chunk) : length
    this.lastWriteMs = this.server.heartbeats.nowMs
    this.#lastButOne = length > 1 ? byteAt(chunk, length - 2) : this.#lastByte
    this.#lastByte = byteAt(chunk, length - 1)
  }

  #writeStreamHead(): void {
    const res = this.#res
    this.#isHeadSent = true
    this.firstByteAtMs = performance.now()
    res.writeStatus(statusLine(this.status))
    this.#writeOwnHeaders()
    const headers = this.#streamHeaders as HeaderList
    const isEventStream = this.#isEventStream
    for (let i = 0; i < headers.length; i += 2)
      if (!isEventStream || headers[i] !== PROXY_BUFFERING) res.writeHeader(headers[i], headers[i + 1])
    if (isEventStream) res.writeHeader(PROXY_BUFFERING, 'no')
    this.#streamHeaders = null
  }

  #watchDrain(): void {
    this.#watchesDrain = true
    this.#res.onWritable(() => {
      this.takings++
      this.#isWritable = true
      this.clientDrained()
      return true
    })
  }

  /** The client has taken what was buffered. */
  protected clientDrained(): void {
    this.#listener?.onClientDrain()
  }

  /** @param last written before the end */
  closeStream(last: Buffer | string = EMPTY): void {
    if (this.isDone) return
    if (!this.#fitsCork(last)) {
      this.writeChunk(last)
      this.closeStream()
      return
    }
    this.bytesOut += Buffer.byteLength(last)
    // After the first chunk the library would write its close header into the body.
    const close = !this.#isHeadSent && this.#closesConnection
    this.#res.cork(() => {
      if (!this.#isHeadSent) this.#writeStreamHead()
      this.#res.end(last, close)
    })
    this.#done()
  }

  /** What ends the event under way, so that another may follow; empty between two events. */
  get eventBorder(): string {
    if (this.#lastByte !== LINE_FEED) return '\n\n'
    return this.#lastButOne === LINE_FEED ? '' : '\n'
  }

  /** A comment line, only where a line or an event has just ended. @source WHATWG HTML, server-sent events */
  beat(): void {
    if (this.isDone || !this.#isWritable || this.#lastByte !== LINE_FEED) return
    this.writeChunk(this.#lastButOne === LINE_FEED ? ':\n\n' : ':\n')
  }

  /** Closes the client's connection at once, whatever was sent. */
  destroy(): void {
    if (this.isDone) return
    this.#res.close()
  }

  #clientLeft(): void {
    if (this.isDone) return
    this.isAborted = true
    if (this.status === 0) this.status = CLIENT_CLOSED_REQUEST
    this.#done()
  }

  #done(): void {
    this.isDone = true
    const listener = this.#listener
    this.#listener = null
    if (this.#isEventStream) this.server.heartbeats.remove(this)
    // Whoever has ended its own reply has taken its leave before: this one must stop.
    listener?.onCancel()
    this.finished()
  }
}

/** @source RFC 9110 §15.3.5, §15.4.5 */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304
}

function byteAt(chunk: string | Buffer, index: number): number {
  return typeof chunk === 'string' ? chunk.charCodeAt(index) : chunk[index]
}
