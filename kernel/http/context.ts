/**
 * One request, from its arrival to the end of its reply: what handlers and hooks see, and the only place
 * that touches the server library's response object. @hot
 */
import type { HttpResponse } from 'uWebSockets.js'
import type { Identity } from '../contracts/auth.ts'
import type { RelayContext, SinkListener } from '../contracts/reply-sink.ts'
import type { ReplyHeaders, RoutingPeek, SseWriter } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { Validator } from '../schema/validate.ts'
import type { CompiledRoute } from './compiled-route.ts'
import type { HeartbeatTarget } from './heartbeat.ts'
import { parseJson } from './parse-routing.ts'
import { peekRouting } from './peek.ts'
import { type CopiedHeaders, headerValue } from './request-headers.ts'
import { failRequest, finishRequest } from './run.ts'
import type { ServerParts } from './server-parts.ts'
import { ContextSseWriter } from './sse.ts'
import { statusLine } from './status-line.ts'

const EMPTY = Buffer.alloc(0)
const LINE_FEED = 0x0a
/**
 * Whole replies up to this size are handed over at once, and the server library copies what the client does not take.
 * Must not be less than the read buffer of `upstream`, whose bytes the relay sends without a copy of its own.
 */
const MAX_BUFFERED_BYTES = 65_536
/** Status noted for a request whose client left before an answer; never sent. */
const CLIENT_CLOSED_REQUEST = 499
const EVENT_STREAM = 'text/event-stream'

export class HttpContext implements RelayContext, HeartbeatTarget {
  readonly server: ServerParts
  readonly compiled: CompiledRoute
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: CopiedHeaders
  readonly requestId: string
  readonly startedAtMs: number
  identity: Identity | null = null
  status = 0
  bytesOut = 0
  firstByteAtMs = 0
  isAborted = false
  isDone = false
  errorCode: string | null = null
  /** The body is whole. */
  hasBody = false
  /** An error reply is being made. */
  isFailing = false
  /** The access check has passed. */
  isAdmitted = false
  /** The reply closes the connection. */
  closesConnection = false
  /** Set by the relay, for the access line and metrics. */
  workerUrl: string | null = null
  /** Plugin values by slot index; made when the first is set. */
  slots: unknown[] | null = null

  readonly #res: HttpResponse
  readonly #pathValues: readonly string[]
  #body: Buffer = EMPTY
  /** The pooled block under the body, given back at the end; null when there is none or somebody may keep it. */
  #bodyBlock: Buffer | null = null
  #listener: SinkListener | null = null
  #abortListeners: (() => void)[] | null = null
  #peek: RoutingPeek | null = null
  #parsed: unknown = undefined

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
    compiled: CompiledRoute,
    res: HttpResponse,
    method: string,
    path: string,
    query: string,
    pathValues: readonly string[],
    headers: CopiedHeaders,
    requestId: string,
  ) {
    this.server = server
    this.compiled = compiled
    this.#res = res
    this.method = method
    this.path = path
    this.query = query
    this.#pathValues = pathValues
    this.headers = headers
    this.requestId = requestId
    this.startedAtMs = performance.now()
    res.onAborted(() => this.#clientLeft())
  }

  get #closesConnection(): boolean {
    return this.closesConnection || this.server.closesConnections
  }

  get route() {
    return this.compiled.definition
  }

  get hooks() {
    return this.compiled.hooks
  }

  get forwardedHeaders(): HeaderList {
    return this.headers.forwarded
  }

  get isStreaming(): boolean {
    return this.#isStreaming
  }

  get isEventStream(): boolean {
    return this.#isEventStream
  }

  param(name: string): string {
    const index = this.compiled.paramNames.indexOf(name)
    return index < 0 ? '' : decode(this.#pathValues[index])
  }

  queryParam(name: string): string | null {
    return this.query === '' ? null : new URLSearchParams(this.query).get(name)
  }

  header(name: string): string | undefined {
    return headerValue(this.headers.kept, name)
  }

  /** Whoever asks may keep it: its memory is not used again. */
  get bodyBytes(): Buffer {
    this.#bodyBlock = null
    return this.#body
  }

  get rawBody(): Buffer {
    return this.#body
  }

  /** @param block the pooled block under it, or null */
  takeBody(bytes: Buffer, block: Buffer | null): void {
    this.#body = bytes
    this.#bodyBlock = block
  }

  forgetBody(): void {
    const { onResponse, onChunk, onError, onDone } = this.compiled.hooks
    // Hooks that are still to come may read it.
    if (onResponse === null && onChunk === null && onError === null && onDone === null) this.#body = EMPTY
    this.#bodyBlock = null
  }

  /** At the very end, when nobody writes it to a worker any more. */
  recycleBody(): void {
    const block = this.#bodyBlock
    this.#body = EMPTY
    this.#bodyBlock = null
    if (block !== null) this.server.bodies.give(block)
  }

  setBody(bytes: Buffer): void {
    this.#body = bytes
    this.#bodyBlock = null
    this.#peek = null
    this.#parsed = undefined
  }

  body<T>(validator: Validator<T>): T {
    return validator.parse(this.bodyJson())
  }

  bodyJson(): unknown {
    if (this.#parsed === undefined) this.#parsed = parseJson(this.#body)
    return this.#parsed
  }

  peek(): RoutingPeek {
    this.#peek ??= peekRouting(this.#body)
    return this.#peek
  }

  json(status: number, value: unknown, headers?: ReplyHeaders): void {
    this.send(status, 'application/json', JSON.stringify(value), headers)
  }

  text(status: number, body: string, headers?: ReplyHeaders): void {
    this.send(status, 'text/plain; charset=utf-8', body, headers)
  }

  send(status: number, contentType: string | null, body: string | Buffer, headers?: ReplyHeaders): void {
    if (this.isDone || this.#isSendingInSteps) return
    this.#sendAll(status, contentType, headers ?? null, body)
  }

  sendWhole(status: number, headers: HeaderList, body: Buffer): void {
    if (this.isDone || this.#isSendingInSteps) return
    this.#sendAll(status, null, headers, body)
  }

  #sendAll(
    status: number,
    contentType: string | null,
    headers: ReplyHeaders | null,
    body: string | Buffer,
  ): void {
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
      else if (status === 204 || status === 304) this.#endWithoutBody(null)
      else if (body.length > MAX_BUFFERED_BYTES)
        this.#sendInSteps(typeof body === 'string' ? Buffer.from(body) : body)
      else res.end(body, this.#closesConnection)
    })
    if (!this.#isSendingInSteps) this.#done()
  }

  /** A large body goes out as the client takes it: the request lasts as long, also for a shutdown that waits for it. */
  #sendInSteps(body: Buffer): void {
    this.#isSendingInSteps = true
    const res = this.#res
    const [, isWhole] = res.tryEnd(body, body.length)
    if (isWhole) {
      this.#isSendingInSteps = false
      return
    }
    res.onWritable((sentBytes) => {
      const [isTaken, isNowWhole] = res.tryEnd(body.subarray(sentBytes), body.length)
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

  /** 200 without a body and with nothing but the given headers. @source routes facts 4.3 */
  sendPreflight(headers: ReplyHeaders): void {
    const res = this.#res
    this.status = 200
    res.cork(() => {
      res.writeStatus(statusLine(200))
      res.writeHeader('x-request-id', this.requestId)
      for (let i = 0; i < headers.length; i += 2) res.writeHeader(headers[i], headers[i + 1])
      res.end()
    })
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

  sse(status = 200, headers?: ReplyHeaders): SseWriter {
    const all = ['content-type', `${EVENT_STREAM}; charset=utf-8`, 'cache-control', 'no-cache']
    if (headers !== undefined) all.push(...headers)
    this.startStream(status, all, true)
    return new ContextSseWriter(this)
  }

  setListener(listener: SinkListener | null): void {
    this.#listener = listener
  }

  /** The reply to HEAD ends with its head, however long the body would go on. */
  #sendHeadOnly(): void {
    this.#res.cork(() => {
      this.#writeStreamHead()
      this.#endWithoutBody(null)
    })
    this.#done()
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.isDone) return
    this.status = status
    this.#isStreaming = true
    this.#isEventStream = isEventStream
    this.#streamHeaders = headers
    if (this.method === 'HEAD') {
      this.#sendHeadOnly()
      return
    }
    this.#writeCorked = () => this.#writeChunk()
    if (isEventStream) this.server.heartbeats.add(this)
  }

  /** Exactly one write per cork: several corrupt the stream when the client is slow (platform fact). bench: relay-sse */
  writeStream(chunk: Buffer | string): boolean {
    // After the end there is nothing to wait for.
    if (this.isDone) return true
    if (chunk.length === 0) return this.#isWritable
    this.#chunk = chunk
    this.#res.cork(this.#writeCorked as () => void)
    if (!this.#isWritable && !this.#watchesDrain) this.#watchDrain()
    return this.#isWritable
  }

  #writeChunk(): void {
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
    for (let i = 0; i < headers.length; i += 2) res.writeHeader(headers[i], headers[i + 1])
    this.#streamHeaders = null
  }

  #watchDrain(): void {
    this.#watchesDrain = true
    this.#res.onWritable(() => {
      this.#isWritable = true
      this.#listener?.onClientDrain()
      return true
    })
  }

  endStream(last: Buffer | string = EMPTY): void {
    if (this.isDone) return
    this.bytesOut += Buffer.byteLength(last)
    // After the first chunk the library would write its close header into the body.
    const close = !this.#isHeadSent && this.#closesConnection
    this.#res.cork(() => {
      if (!this.#isHeadSent) this.#writeStreamHead()
      this.#res.end(last, close)
    })
    this.#done()
  }

  /** A comment line, only where a line or an event has just ended. @source WHATWG HTML, server-sent events */
  beat(): void {
    if (this.isDone || !this.#isWritable || this.#lastByte !== LINE_FEED) return
    this.writeStream(this.#lastButOne === LINE_FEED ? ':\n\n' : ':\n')
  }

  fail(error: unknown): void {
    failRequest(this, error)
  }

  destroy(): void {
    if (this.isDone) return
    this.#res.close()
  }

  onAbort(listener: () => void): void {
    if (this.isAborted) listener()
    else if (!this.isDone) this.#addAbortListener(listener)
  }

  #addAbortListener(listener: () => void): void {
    if (this.#abortListeners === null) this.#abortListeners = [listener]
    else this.#abortListeners.push(listener)
  }

  #clientLeft(): void {
    if (this.isDone) return
    this.isAborted = true
    if (this.status === 0) this.status = CLIENT_CLOSED_REQUEST
    const listeners = this.#abortListeners
    this.#done()
    if (listeners !== null) for (const abort of listeners) this.#callAbort(abort)
  }

  /** What a listener throws has no caller who could catch it, and must not end the thread. */
  #callAbort(abort: () => void): void {
    try {
      abort()
    } catch (error) {
      this.server.log.error({ err: error, request_id: this.requestId }, 'an abort listener threw')
    }
  }

  #done(): void {
    this.isDone = true
    const listener = this.#listener
    this.#listener = null
    this.#abortListeners = null
    if (this.#isEventStream) this.server.heartbeats.remove(this)
    // Whoever has ended its own reply has taken its leave before: this one must stop.
    listener?.onCancel()
    finishRequest(this)
  }
}

function byteAt(chunk: string | Buffer, index: number): number {
  return typeof chunk === 'string' ? chunk.charCodeAt(index) : chunk[index]
}

function decode(value: string): string {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
