/** One streamed call over HTTP/2, with timeouts; aborts the request in the engine if the client cancels. @hot */

import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import {
  type Exchange,
  type HeaderList,
  messageOf,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import { type DeadlineKind, TimedExchange } from '#shared'
import { grpcErrors, toStatusError } from '../errors.ts'
import { httpProblem, resetStatus, type Status, statusIn, UNAVAILABLE } from './grpc-status.ts'
import type { H2Connection } from './h2-connections.ts'
import { FramingError, framed, MessageFramer } from './message-framer.ts'
import { toRequestHeaders } from './request-headers.ts'
import { type AbortCall, sendAbort } from './sent-requests.ts'
import { type InboxOwner, StreamInbox } from './stream-inbox.ts'

const OK = 0
const INTERNAL = 13
const NO_HEADERS: HeaderList = []
const MAX_INTERIM = 16
const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants

export interface CallPlan {
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer
  readonly abortCall: AbortCall | null
  /** Longest accepted message. */
  readonly maxMessageBytes: number
}

export class GrpcExchange extends TimedExchange implements Exchange, InboxOwner {
  readonly #connection: H2Connection
  readonly #plan: CallPlan
  readonly #limits: UpstreamLimits
  readonly #handler: UpstreamHandler
  /** Null until the connection is open. */
  #stream: ClientHttp2Stream | null = null
  readonly #inbox: StreamInbox
  readonly #framer: MessageFramer
  #status: Status | null = null
  /** The response is not gRPC; its body is ignored. */
  #isForeign = false
  /** Number of informational responses. */
  #interim = 0
  #hasHead = false
  #hasStarted = false
  #hasEnded = false
  /** The connection broke or could not be opened. */
  #isLost = false
  /** Error of the stream, which may come before that of its connection. */
  #problem: string | null = null
  #isOver = false
  #isPaused = false

  constructor(connection: H2Connection, plan: CallPlan, limits: UpstreamLimits, handler: UpstreamHandler) {
    super()
    this.#connection = connection
    this.#plan = plan
    this.#limits = limits
    this.#handler = handler
    this.#framer = new MessageFramer(plan.maxMessageBytes)
    this.#inbox = new StreamInbox(connection.streamWindowBytes, this)
  }

  /** @throws the error of http2 if the connection is closed */
  start(): void {
    if (this.#connection.isConnecting) {
      this.#enter('connect', this.#limits.connectMs)
      this.#connection.whenReady((isOpen) => this.#connected(isOpen))
    } else {
      this.#enter('first_byte_timeout', this.#firstMessageMs)
      this.#open()
    }
    this.#connection.deadlines.watch(this, this.#limits.requestMs)
  }

  #connected(isOpen: boolean): void {
    if (this.#isOver) return
    if (!isOpen) {
      this.#closed()
      return
    }
    this.#enter('first_byte_timeout', this.#firstMessageMs)
    try {
      this.#open()
    } catch (error) {
      this.#problem = messageOf(error)
      this.#closed()
    }
  }

  /** Limit until the first message, which is the head of the response as well as the beginning of its body. */
  get #firstMessageMs(): number {
    return this.#limits.firstTokenMs || this.#limits.headMs
  }

  /** @throws the error of http2 if the connection is closed */
  #open(): void {
    const { path, headers, body } = this.#plan
    const stream = this.#connection.open(toRequestHeaders(path, headers))
    this.#stream = stream
    this.#connection.tap(stream, this.#inbox)
    stream.on('headers', () => this.#takeInterim())
    stream.on('response', (answer) => this.#takeHead(answer))
    stream.on('trailers', (trailers) => this.#takeStatus(statusIn(trailers)))
    stream.on('end', () => {
      this.#hasEnded = true
      this.#settle()
    })
    stream.on('error', ({ message }: Error) => {
      this.#problem = message
    })
    stream.on('close', () => this.#closed())
    stream.resume()
    stream.end(framed(body))
  }

  #enter(phase: DeadlineKind, limitMs: number): void {
    this.#connection.deadlines.enterPhase(this, phase, limitMs)
  }

  #takeInterim(): void {
    if (++this.#interim > MAX_INTERIM) this.#reject('the engine sent too many informational responses')
  }

  #takeHead(headers: IncomingHttpHeaders): void {
    if (this.#isOver) return
    if (this.#firstMessageMs === 0) this.#enter('idle_timeout', this.#limits.idleMs)
    const problem = httpProblem(headers)
    this.#isForeign = problem !== null
    if (!this.#isPaused) this.#inbox.release()
    this.#hasHead = true
    if (!this.#isOver) this.#takeStatus(statusIn(headers) ?? problem)
  }

  readBytes(bytes: Buffer): void {
    if (this.#isOver || this.#isForeign) return
    this.#framer.push(bytes)
    this.#deliver()
  }

  releaseWindow(bytes: number): void {
    if (this.#stream !== null) this.#connection.releaseWindow(this.#stream, bytes)
  }

  onWindowExceeded(): void {
    this.#reject('the engine exceeded the flow-control window')
  }

  /** Delivers complete messages until none is left or the reader pauses. */
  #deliver(): void {
    try {
      while (!this.#isPaused) {
        const message = this.#framer.next()
        if (message === null) return
        this.#takeMessage(message)
        if (this.#isOver) return
      }
    } catch (error) {
      if (!(error instanceof FramingError)) throw error
      this.#reject(error.message)
    }
  }

  /** Cancels the call because of bytes that the gateway does not accept; the engine reported no error. */
  #reject(problem: string): void {
    if (this.#isOver) return
    this.#leave()
    this.#end()
    const error = grpcErrors.engine_message_unreadable(problem)
    this.#handler.onResponseError(new UpstreamFailure('refused', problem, this.#hasStarted, { error }))
  }

  #takeMessage(message: Buffer): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true
      this.#enter('idle_timeout', this.#limits.idleMs)
      this.#handler.onResponseStart(200, NO_HEADERS, -1)
      if (this.#isOver) return
    }
    this.#handler.onResponseData(message)
    this.phaseSinceMs = this.#connection.deadlines.stampMs
  }

  #takeStatus(status: Status | null): void {
    this.#status ??= status
    this.#settle()
  }

  /** Reports the end after all messages were delivered. */
  #settle(): void {
    if (this.#isOver || this.#isPaused || !this.#hasEnded || this.#status === null) return
    const status = this.#status
    if (status.code !== OK) this.#fail(status)
    else if (this.#framer.isCut)
      this.#fail({ code: INTERNAL, details: 'the last message is truncated', isOwn: false })
    else {
      this.#end()
      if (!this.#hasStarted) this.#handler.onResponseStart(200, NO_HEADERS, -1)
      this.#handler.onResponseEnd()
    }
  }

  /** The stream is closed; received messages are still delivered. */
  #closed(): void {
    if (this.#isOver) return
    this.#hasEnded = true
    const rstCode = this.#stream?.rstCode ?? NGHTTP2_NO_ERROR
    if (this.#status === null) {
      this.#isLost = this.#stream === null || !this.#connection.isOpen
      if (this.#isLost)
        this.#status = {
          code: UNAVAILABLE,
          details: this.#connection.problem ?? this.#problem ?? 'the connection was lost',
          isOwn: false,
        }
      else if (rstCode === NGHTTP2_NO_ERROR)
        this.#status = { code: INTERNAL, details: 'the response has no grpc-status', isOwn: false }
      else this.#status = resetStatus(rstCode)
    }
    this.#settle()
  }

  #fail({ code, details, isOwn }: Status): void {
    const kind = !this.#isLost ? 'refused' : this.phase === 'connect' ? 'connect' : 'reset'
    this.#end()
    const error = toStatusError(code, details, isOwn)
    const what = `gRPC status ${code}: ${details}`
    this.#handler.onResponseError(new UpstreamFailure(kind, what, this.#hasStarted, { error }))
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.isResting = true
    this.#inbox.hold()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.isResting = false
    if (this.#isOver) return
    if (this.phase !== 'connect') this.phaseSinceMs = this.#connection.deadlines.stampMs
    // Not synchronously, since readers may resume inside of a message callback.
    process.nextTick(() => this.#continue())
  }

  #continue(): void {
    if (this.#isOver || this.#isPaused) return
    this.#deliver()
    if (this.#isOver || this.#isPaused) return
    if (this.#hasHead) this.#inbox.release()
    this.#settle()
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#abortCall()
  }

  override onDeadline(kind: DeadlineKind): void {
    if (this.#isOver) return
    this.#end()
    this.#abortCall()
    this.#handler.onResponseError(
      new UpstreamFailure(kind, `the ${kind.replace('_', ' ')} passed`, this.#hasStarted),
    )
  }

  #abortCall(): void {
    if (this.#stream === null) return
    this.#leave()
    const { abortCall, headers } = this.#plan
    if (abortCall !== null) sendAbort(this.#connection, abortCall, headers)
  }

  /** Cancels the stream and ignores further data. */
  #leave(): void {
    if (this.#stream === null) return
    this.#connection.untap(this.#stream)
    this.#stream.close(NGHTTP2_CANCEL)
  }

  #end(): void {
    this.#isOver = true
    this.#connection.deadlines.unwatch(this)
  }
}
