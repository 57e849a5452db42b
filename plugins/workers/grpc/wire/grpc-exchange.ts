/** One streamed call: messages in order, limits on silence, and an engine that is told when nobody listens any more. @hot */

import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import {
  type Exchange,
  type HeaderList,
  UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import { toStatusError } from '../errors.ts'
import { httpProblem, resetStatus, type Status, statusIn, UNAVAILABLE } from './grpc-status.ts'
import type { H2Connection } from './h2-connections.ts'
import { FramingError, framed, MessageFramer } from './message-framer.ts'
import { toRequestHeaders } from './metadata.ts'
import { type TakeBack, tellEngine } from './sent-requests.ts'
import { type InboxOwner, StreamInbox } from './stream-inbox.ts'

const OK = 0
const RESOURCE_EXHAUSTED = 8
const INTERNAL = 13
const NO_HEADERS: HeaderList = []
const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants

type LimitKind = Extract<
  UpstreamFailureKind,
  'connect' | 'first_byte_timeout' | 'idle_timeout' | 'request_timeout'
>

export interface CallPlan {
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer
  readonly takeBack: TakeBack | null
  /** Longest message of the engine. */
  readonly maxMessageBytes: number
}

export class GrpcExchange implements Exchange, InboxOwner {
  readonly #connection: H2Connection
  readonly #plan: CallPlan
  readonly #limits: UpstreamLimits
  readonly #handler: UpstreamHandler
  /** Null until the connection stands. */
  #stream: ClientHttp2Stream | null = null
  readonly #inbox: StreamInbox
  readonly #framer: MessageFramer
  #phase: LimitKind = 'connect'
  #phaseTimer: NodeJS.Timeout | null = null
  #requestTimer: NodeJS.Timeout | null = null
  /** When the last message was taken. */
  #heardAtMs = 0
  #status: Status | null = null
  /** The answer is not of an engine; its body says nothing. */
  #isForeign = false
  #hasHead = false
  #hasStarted = false
  #hasEnded = false
  /** The connection has broken, or was never made. */
  #isLost = false
  /** Why the stream broke, where it says so; it may before its connection does. */
  #problem: string | null = null
  #isOver = false
  #isPaused = false

  constructor(connection: H2Connection, plan: CallPlan, limits: UpstreamLimits, handler: UpstreamHandler) {
    this.#connection = connection
    this.#plan = plan
    this.#limits = limits
    this.#handler = handler
    this.#framer = new MessageFramer(plan.maxMessageBytes)
    this.#inbox = new StreamInbox(connection.streamWindowBytes, this)
  }

  start(): void {
    const { requestMs, firstByteMs, connectMs } = this.#limits
    if (requestMs > 0) this.#requestTimer = setTimeout(() => this.#late('request_timeout'), requestMs)
    if (!this.#connection.isConnecting) {
      this.#enter('first_byte_timeout', firstByteMs)
      this.#open()
      return
    }
    this.#enter('connect', connectMs)
    this.#connection.whenSettled((stands) => {
      if (this.#isOver) return
      if (!stands) {
        this.#closed()
        return
      }
      this.#enter('first_byte_timeout', this.#isPaused ? 0 : firstByteMs)
      try {
        this.#open()
      } catch (error) {
        this.#problem = error instanceof Error ? error.message : String(error)
        this.#closed()
      }
    })
  }

  /** @throws what http2 throws where the connection does not stand any more */
  #open(): void {
    const { path, headers, body } = this.#plan
    const stream = this.#connection.open(toRequestHeaders(path, headers))
    this.#stream = stream
    this.#connection.tap(stream, this.#inbox)
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

  #enter(phase: LimitKind, limitMs: number): void {
    this.#phase = phase
    if (this.#phaseTimer !== null) clearTimeout(this.#phaseTimer)
    this.#phaseTimer = limitMs === 0 ? null : setTimeout(() => this.#late(this.#phase), limitMs)
  }

  /** Messages only note when they came: a timer that were set back for each would cost more than reading it. */
  #enterIdle(limitMs: number): void {
    this.#heardAtMs = performance.now()
    this.#enter('idle_timeout', 0)
    if (limitMs > 0) this.#phaseTimer = setTimeout(() => this.#checkIdle(limitMs), limitMs)
  }

  #checkIdle(limitMs: number): void {
    const leftMs = Math.ceil(this.#heardAtMs + limitMs - performance.now())
    if (leftMs <= 0) this.#late('idle_timeout')
    else this.#phaseTimer = setTimeout(() => this.#checkIdle(limitMs), leftMs)
  }

  #takeHead(headers: IncomingHttpHeaders): void {
    if (this.#isOver) return
    this.#enterIdle(this.#isPaused ? 0 : this.#limits.idleMs)
    const problem = httpProblem(headers)
    this.#isForeign = problem !== null
    if (!this.#isPaused) this.#inbox.letGo()
    this.#hasHead = true
    if (!this.#isOver) this.#takeStatus(statusIn(headers) ?? problem)
  }

  readBytes(bytes: Buffer): void {
    if (this.#isOver || this.#isForeign) return
    this.#framer.push(bytes)
    this.#deliver()
  }

  giveBack(bytes: number): void {
    if (this.#stream !== null) this.#connection.giveBack(this.#stream, bytes)
  }

  flooded(): void {
    this.#giveUp({ code: RESOURCE_EXHAUSTED, details: 'more came than was asked for', isOwn: false })
  }

  /** Messages that are whole, until there are no more or nobody wants any. */
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
      this.#giveUp({ code: error.code, details: error.message, isOwn: false })
    }
  }

  #giveUp(status: Status): void {
    if (this.#isOver) return
    this.#leave()
    this.#fail(status)
  }

  #takeMessage(message: Buffer): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true
      this.#handler.onResponseStart(200, NO_HEADERS, -1)
      if (this.#isOver) return
    }
    this.#handler.onResponseData(message)
    this.#heardAtMs = performance.now()
  }

  #takeStatus(status: Status | null): void {
    this.#status ??= status
    this.#settle()
  }

  /** The end is told once all messages were. */
  #settle(): void {
    if (this.#isOver || this.#isPaused || !this.#hasEnded || this.#status === null) return
    const status = this.#status
    if (status.code !== OK) this.#fail(status)
    else if (this.#framer.isCut)
      this.#fail({ code: INTERNAL, details: 'the last message is cut off', isOwn: false })
    else {
      this.#end()
      if (!this.#hasStarted) this.#handler.onResponseStart(200, NO_HEADERS, -1)
      this.#handler.onResponseEnd()
    }
  }

  /** Nothing more will come; what was read is still the reader's. */
  #closed(): void {
    if (this.#isOver) return
    this.#hasEnded = true
    const rstCode = this.#stream?.rstCode ?? NGHTTP2_NO_ERROR
    if (this.#status === null) {
      this.#isLost = this.#stream === null || !this.#connection.isOpen
      if (this.#isLost)
        this.#status = {
          code: UNAVAILABLE,
          details: this.#connection.problem ?? this.#problem ?? 'the connection is gone',
          isOwn: false,
        }
      else if (rstCode === NGHTTP2_NO_ERROR)
        this.#status = { code: INTERNAL, details: 'the answer has no status', isOwn: false }
      else this.#status = resetStatus(rstCode)
    }
    this.#settle()
  }

  #fail({ code, details, isOwn }: Status): void {
    const kind = !this.#isLost ? 'refused' : this.#phase === 'connect' ? 'connect' : 'reset'
    this.#end()
    const error = toStatusError(code, details, isOwn)
    const what = `the engine's status is ${code}: ${details}`
    this.#handler.onResponseError(new UpstreamFailure(kind, what, this.#hasStarted, { error }))
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#inbox.hold()
    if (this.#phase === 'connect' || this.#phaseTimer === null) return
    clearTimeout(this.#phaseTimer)
    this.#phaseTimer = null
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.#isOver) return
    const { firstByteMs, idleMs } = this.#limits
    if (this.#phase === 'first_byte_timeout') this.#enter(this.#phase, firstByteMs)
    else if (this.#phase === 'idle_timeout') this.#enterIdle(idleMs)
    // A reader that resumes from within a message must not be called from there.
    process.nextTick(() => this.#goOn())
  }

  #goOn(): void {
    if (this.#isOver || this.#isPaused) return
    this.#deliver()
    if (this.#isOver || this.#isPaused) return
    if (this.#hasHead) this.#inbox.letGo()
    this.#settle()
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#takeBack()
  }

  #late(kind: LimitKind): void {
    if (this.#isOver) return
    this.#end()
    this.#takeBack()
    this.#handler.onResponseError(
      new UpstreamFailure(kind, `the limit of the ${kind} is over`, this.#hasStarted),
    )
  }

  #takeBack(): void {
    if (this.#stream === null) return
    this.#leave()
    const { takeBack, headers } = this.#plan
    if (takeBack !== null) tellEngine(this.#connection, takeBack, headers)
  }

  /** What is on its way is not for this call any more. */
  #leave(): void {
    if (this.#stream === null) return
    this.#connection.untap(this.#stream)
    this.#stream.close(NGHTTP2_CANCEL)
  }

  #end(): void {
    this.#isOver = true
    if (this.#phaseTimer !== null) clearTimeout(this.#phaseTimer)
    if (this.#requestTimer !== null) clearTimeout(this.#requestTimer)
  }
}
