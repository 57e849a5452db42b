/** Writes a response to a client's connection: the only place that writes to the server library's response object. @hot */
import type { HttpResponse, us_socket_context_t } from 'uWebSockets.js'
import type { ExtraHeaders } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { turnNowMs } from '../observe/timing.ts'
import { canonicalAddress } from '../wire/canonical-address.ts'
import { headerOf } from '../wire/headers.ts'
import type { HeartbeatTarget } from './heartbeat.ts'
import type { CopiedHeaders } from './request-headers.ts'
import { hasNoBody, ResponseSink } from './response-sink.ts'
import type { ServerParts } from './server-parts.ts'

const EMPTY = Buffer.alloc(0)
/** Sent with every event stream, because nginx buffers responses otherwise. @source nginx, proxy_buffering */
const PROXY_BUFFERING = 'x-accel-buffering'
const LINE_FEED = 0x0a
/**
 * Largest content of one cork besides chunk framing and stream end. Beyond its 16 KiB buffer the server library sends the
 * buffer first, and silently drops the rest if the system accepts none of it.
 * @source docs/decisions/0007-one-write-per-cork.md
 */
const MAX_CORKED_BYTES = 16_368
/** The same limit if the cork contains the head. */
const MAX_BYTES_BESIDE_HEAD = 8_192
/** UTF-8 bytes of a UTF-16 code unit, at most. */
const MAX_UTF8_BYTES = 3
/** Size of the read buffer of `upstream`, whose bytes the relay sends without copying. */
const READ_BUFFER_BYTES = 65_536
const IPV4_BYTES = 4

/** Status lines by status, created on first use. */
const statusLines = new Map<number, string>()

export class HttpResponseSink extends ResponseSink implements HeartbeatTarget {
  readonly method: string
  readonly headers: CopiedHeaders
  readonly requestId: string
  lastWriteMs = 0
  heartbeatNext: HeartbeatTarget | null = null
  heartbeatPrevious: HeartbeatTarget | null = null

  readonly #server: ServerParts
  readonly #res: HttpResponse
  #isSendingInSteps = false

  // Streamed responses only.
  #isHeadSent = false
  #streamHeaders: HeaderList | null = null
  #chunk: string | Buffer = EMPTY
  #watchesDrain = false
  /** Written while the client is slow, and not yet passed to the library. */
  #held: Buffer[] = []
  /** Ends the response once the client has taken what was written; null before the end. */
  #endWhenTaken: (() => void) | null = null
  #writeCorked: (() => void) | null = null

  constructor(
    server: ServerParts,
    res: HttpResponse,
    method: string,
    headers: CopiedHeaders,
    requestId: string,
  ) {
    super()
    this.#server = server
    this.#res = res
    this.method = method
    this.headers = headers
    this.requestId = requestId
    res.onAborted(() => this.clientLeft())
  }

  get #closesConnection(): boolean {
    return this.closesConnection || this.#server.closesConnections
  }

  override keepOpen(): void {
    if (this.isDone) return
    this.#res.pause()
    this.#res.resume()
  }

  override remoteAddress(): string {
    // The library provides it only while the response is open.
    if (this.isDone) return ''
    const bytes = new Uint8Array(this.#res.getRemoteAddress())
    // Faster than the text of the library for IPv4: 2 µs instead of 5.
    return bytes.length === IPV4_BYTES
      ? `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
      : canonicalAddress(Buffer.from(this.#res.getRemoteAddressAsText()).toString('latin1'))
  }

  override send(
    status: number,
    contentType: string | null,
    headers: ExtraHeaders | null,
    body: string | Buffer,
  ): void {
    if (this.isDone || this.#isSendingInSteps) return
    const res = this.#res
    this.status = status
    this.firstByteAtMs = turnNowMs()
    this.bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    res.cork(() => {
      this.#writeStatus()
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
    if (!this.#isSendingInSteps) this.done()
  }

  /** Sends a large body as the client reads it; the request stays open until then, also during a shutdown. */
  #sendInSteps(body: Buffer): void {
    const res = this.#res
    if (this.#closesConnection) res.writeHeader('connection', 'close')
    const [, isComplete] = res.tryEnd(body, body.length)
    if (isComplete) return
    this.#isSendingInSteps = true
    this.isWritable = false
    const kept = body.length > READ_BUFFER_BYTES ? body : Buffer.from(body)
    res.onWritable((sentBytes) => {
      this.drains++
      const [isTaken, isNowComplete] = res.tryEnd(kept.subarray(sentBytes), kept.length)
      if (isNowComplete) this.done()
      return isTaken
    })
  }

  /**
   * With a length, the library never considers the response complete and closes the connection at the next request, so it
   * gets a length only if the connection closes anyway. @param length null if unknown
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
  sendPreflight(headers: ExtraHeaders): void {
    const res = this.#res
    this.status = 200
    res.cork(() => {
      res.writeHeader('x-request-id', this.requestId)
      for (let i = 0; i < headers.length; i += 2) res.writeHeader(headers[i], headers[i + 1])
      res.end(EMPTY, this.#closesConnection)
    })
    this.done()
  }

  /** Upgrades the connection to a WebSocket. @param data user data of the socket in the library */
  upgrade<Data>(data: Data, key: string, protocol: string, context: us_socket_context_t): void {
    if (this.isDone) return
    const res = this.#res
    this.status = 101
    this.firstByteAtMs = turnNowMs()
    res.cork(() => {
      res.writeStatus('101 Switching Protocols').writeHeader('x-request-id', this.requestId)
      res.upgrade<Data>(data, key, protocol, '', context)
    })
    this.done()
  }

  /** The library writes `200 OK` before the first header without being asked. */
  #writeStatus(): void {
    if (this.status !== 200) this.#res.writeStatus(statusLine(this.status))
  }

  #writeOwnHeaders(): void {
    const res = this.#res
    res.writeHeader('x-request-id', this.requestId)
    if (this.servedModel !== null) res.writeHeader('x-weir-model', this.servedModel)
    const origin = headerOf(this.headers.kept, 'origin')
    if (origin !== undefined) {
      const cors = this.#server.cors.replyHeaders(origin)
      for (let i = 0; i < cors.length; i += 2) res.writeHeader(cors[i], cors[i + 1])
    }
  }

  override start(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.isDone) return
    this.status = status
    this.isStreaming = true
    this.isEventStream = isEventStream
    this.#streamHeaders = headers
    if (this.method === 'HEAD' || hasNoBody(status)) {
      this.#sendHeadOnly()
      return
    }
    this.#writeCorked = () => this.#writeCorkedChunk()
    if (isEventStream) this.#server.heartbeats.add(this)
  }

  /** Ends after the head: responses to HEAD, and statuses without a body. */
  #sendHeadOnly(): void {
    this.#res.cork(() => {
      this.#writeStreamHead()
      this.#endWithoutBody(null)
    })
    this.done()
  }

  /** One write per cork, which it fits. bench: relay-sse */
  override write(chunk: Buffer | string): boolean {
    // No drain follows after the end, or if the request failed before its stream was started.
    if (this.isDone || !this.isStreaming || this.#endWhenTaken !== null) return true
    if (chunk.length === 0) return this.isWritable
    this.countChunk(chunk)
    if (this.isWritable && this.#fitsCork(chunk)) this.#writeInCork(chunk)
    else this.#writePieces(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    if (!this.isWritable && !this.#watchesDrain) this.#watchDrain()
    return this.isWritable
  }

  get #corkRoom(): number {
    return this.#isHeadSent ? MAX_CORKED_BYTES : MAX_BYTES_BESIDE_HEAD
  }

  #fitsCork(chunk: Buffer | string): boolean {
    return (typeof chunk === 'string' ? chunk.length * MAX_UTF8_BYTES : chunk.length) <= this.#corkRoom
  }

  /** Holds what the client does not take: the library does not report when it has sent what it holds itself. */
  #writePieces(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && this.isWritable) {
      const end = at + this.#corkRoom
      this.#writeInCork(bytes.subarray(at, end))
      at = end
    }
    if (at < bytes.length) this.#held.push(Buffer.from(bytes.subarray(at)))
  }

  #writeInCork(chunk: Buffer | string): void {
    this.#chunk = chunk
    this.#res.cork(this.#writeCorked as () => void)
  }

  #writeCorkedChunk(): void {
    const chunk = this.#chunk
    if (!this.#isHeadSent) {
      this.#writeStreamHead()
      // The library cannot close after a stream; the client closes after this header.
      if (this.#closesConnection) this.#res.writeHeader('connection', 'close')
    }
    this.isWritable = this.#res.write(chunk)
    this.#chunk = EMPTY
    this.lastWriteMs = this.#server.heartbeats.nowMs
  }

  #writeStreamHead(): void {
    const res = this.#res
    this.#isHeadSent = true
    this.firstByteAtMs = turnNowMs()
    this.#writeStatus()
    this.#writeOwnHeaders()
    const headers = this.#streamHeaders as HeaderList
    const { isEventStream } = this
    for (let i = 0; i < headers.length; i += 2)
      if (!isEventStream || headers[i] !== PROXY_BUFFERING) res.writeHeader(headers[i], headers[i + 1])
    if (isEventStream) res.writeHeader(PROXY_BUFFERING, 'no')
    this.#streamHeaders = null
  }

  #watchDrain(): void {
    this.#watchesDrain = true
    this.#res.onWritable(() => {
      if (this.#held.length === 0 && this.#endWhenTaken === null) {
        this.drained()
        return true
      }
      this.drains++
      // The library uses the response after this callback.
      setImmediate(() => this.#writeHeld())
      return true
    })
  }

  #writeHeld(): void {
    if (this.isDone) return
    this.isWritable = true
    const held = this.#held
    this.#held = []
    for (const bytes of held) this.#writePieces(bytes)
    if (!this.isWritable) return
    if (this.#endWhenTaken === null) this.drained()
    else this.#endWhenTaken()
  }

  /** Closes the connection without the end of the response, which was sent as far as it goes. */
  #cut(): void {
    // Before the library reports the closed connection as a disconnect of the client.
    this.done()
    this.#res.close()
  }

  override end(last: Buffer | string): void {
    if (this.isDone || !this.isStreaming || this.#endWhenTaken !== null) return
    const isCut = this.isCutAtEnd
    let rest = last
    if (isCut || !this.#fitsCork(rest)) {
      this.write(rest)
      rest = EMPTY
    }
    if (this.isWritable) this.#endNow(rest, isCut)
    else this.#endLater(rest, isCut)
  }

  /** A connection that closes, also that of a shutdown, loses what the library still holds for a slow client. */
  #endLater(last: Buffer | string, isCut: boolean): void {
    const kept = typeof last === 'string' ? last : Buffer.from(last)
    this.#endWhenTaken = () => this.#endNow(kept, isCut)
  }

  #endNow(last: Buffer | string, isCut: boolean): void {
    if (isCut) {
      this.#cut()
      return
    }
    this.bytesOut += Buffer.byteLength(last)
    // After the first chunk the library would write its close header into the body.
    const close = !this.#isHeadSent && this.#closesConnection
    this.#res.cork(() => {
      if (!this.#isHeadSent) this.#writeStreamHead()
      this.#res.end(last, close)
    })
    this.done()
  }

  /** Writes a comment line if a line or an event has just ended. @source WHATWG HTML, server-sent events */
  beat(): void {
    if (this.isDone || !this.isWritable || this.lastByte !== LINE_FEED) return
    this.write(this.lastButOne === LINE_FEED ? ':\n\n' : ':\n')
  }

  override destroy(): void {
    // The library calls `onAborted` before it returns.
    if (!this.isDone) this.#res.close()
  }

  protected override done(): void {
    if (this.isDone) return
    if (this.isEventStream) this.#server.heartbeats.remove(this)
    super.done()
  }
}

/** @source RFC 9110 §15 */
function statusLine(status: number): string {
  let line = statusLines.get(status)
  if (line === undefined) {
    // Loaded with the first status that needs it: 1 MB. An import would load `fetch` as well.
    const { STATUS_CODES } = process.getBuiltinModule('node:http')
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
    statusLines.set(status, line)
  }
  return line
}
