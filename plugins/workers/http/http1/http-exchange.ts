/** @hot One request to a worker and its response. */
import {
  COLON,
  type Exchange,
  type HeaderList,
  type RuntimeType,
  UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import { type DeadlineKind, type Deadlines, TimedExchange } from '#shared'
import { EngineError } from '../engine-error.ts'
import type { Connection, ConnectionPool, PooledExchange } from './connection-pool.ts'

const TIMEOUT_TEXT: Readonly<Record<DeadlineKind, string>> = {
  connect: 'the connect timeout passed',
  first_byte_timeout: 'the headMs timeout passed before the response headers arrived',
  idle_timeout: 'the idle timeout passed without a byte of the response',
  request_timeout: 'the request timeout passed before the response was complete',
}

const FIRST_TOKEN_TEXT = 'the firstTokenMs timeout passed before the first event or byte of the body arrived'

const LF = 0x0a
const CR = 0x0d

/** A connection that breaks later, in milliseconds, was not closed while idle. */
const RESEND_WITHIN_MS = 1_000

const FIRST_ERROR_STATUS = 400

/** What is sent. */
export interface RequestBytes {
  /** For the latin1 encoding. */
  readonly head: string
  readonly body: Buffer | null
  readonly isHeadRequest: boolean
}

export class HttpExchange extends TimedExchange implements Exchange, PooledExchange {
  connection: Connection | null = null
  /** Kept until the first response byte, in case the request must be sent again. */
  head: string
  body: Buffer | null
  readonly isHeadRequest: boolean
  isPaused = false
  private isDone = false
  private hasResponseStarted = false
  private hasHead = false
  private wasSentAgain = false
  /** The body so far ends within a comment of an event stream. */
  private isInComment = false
  private readonly pool: ConnectionPool
  private readonly deadlines: Deadlines
  private readonly limits: UpstreamLimits
  private handler: UpstreamHandler
  private readonly runtime: RuntimeType | null

  /** @param runtime the engine, whose errors are read; null passes them on unread */
  constructor(
    request: RequestBytes,
    pool: ConnectionPool,
    deadlines: Deadlines,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
    runtime: RuntimeType | null,
  ) {
    super()
    this.head = request.head
    this.body = request.body
    this.isHeadRequest = request.isHeadRequest
    this.pool = pool
    this.deadlines = deadlines
    this.limits = limits
    this.handler = handler
    this.runtime = runtime
  }

  start(): void {
    this.deadlines.watch(this, this.limits.requestMs)
    this.pool.dispatch(this)
  }

  pause(): void {
    if (this.isDone || this.isPaused) return
    this.isPaused = true
    this.isResting = true
    this.connection?.pause()
  }

  resume(): void {
    if (this.isDone || !this.isPaused) return
    this.isPaused = false
    this.isResting = false
    if (this.phase !== 'connect') this.phaseSinceMs = this.deadlines.stampMs
    this.connection?.resume()
  }

  abort(): void {
    if (this.isDone) return
    this.leave()?.destroy()
  }

  onConnecting(): void {
    this.deadlines.enterPhase(this, 'connect', this.limits.connectMs)
  }

  onRequestSent(): void {
    const { headMs, firstTokenMs } = this.limits
    this.deadlines.enterPhase(this, 'first_byte_timeout', firstTokenMs || headMs)
  }

  onBytes(): void {
    if (this.hasHead) {
      if (this.phase === 'idle_timeout') this.phaseSinceMs = this.deadlines.stampMs
      return
    }
    if (this.hasResponseStarted) return
    this.hasResponseStarted = true
    this.head = ''
    this.body = null
    // Bytes of an incomplete head do not extend the timeout.
    if (this.phaseLimitMs === 0) this.deadlines.enterPhase(this, 'idle_timeout', this.limits.idleMs)
  }

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    this.hasHead = true
    if (this.limits.firstTokenMs === 0) this.deadlines.enterPhase(this, 'idle_timeout', this.limits.idleMs)
    if (status >= FIRST_ERROR_STATUS && this.runtime !== null)
      this.handler = EngineError.read(this.handler, this.runtime, status, headers, contentLength)
    else this.handler.onResponseStart(status, headers, contentLength)
  }

  onBody(chunk: Buffer): void {
    if (this.phase !== 'idle_timeout' && this.hasToken(chunk))
      this.deadlines.enterPhase(this, 'idle_timeout', this.limits.idleMs)
    this.handler.onResponseData(chunk)
  }

  /** False for comments and blank lines of an event stream, with which engines report that they still read the prompt. */
  private hasToken(chunk: Buffer): boolean {
    for (const byte of chunk) {
      if (this.isInComment) this.isInComment = byte !== LF
      else if (byte === COLON) this.isInComment = true
      else if (byte !== LF && byte !== CR) return true
    }
    return false
  }

  onEnd(isReusable: boolean): void {
    const connection = this.leave()
    if (isReusable && connection !== null) this.pool.release(connection)
    else connection?.destroy()
    this.handler.onResponseEnd()
  }

  onInvalid(problem: string): void {
    this.fail('protocol', problem)
  }

  onConnectionLost(connection: Connection, cause: Error | undefined): void {
    if (this.isDone) return
    this.connection = null
    const reason = cause === undefined ? 'closed by the worker' : describe(cause)
    if (!connection.isConnected) {
      this.fail('connect', `cannot connect to the worker: ${reason}`, cause)
    } else if (
      this.pool.resends &&
      connection.isReused &&
      !this.hasResponseStarted &&
      !this.wasSentAgain &&
      this.isFreshlySent()
    ) {
      // The worker closed an idle connection before it read the request.
      this.wasSentAgain = true
      this.pool.dispatchFresh(this)
    } else {
      this.fail('reset', `the connection broke before the response was complete: ${reason}`, cause)
    }
  }

  /** A worker that had time to start the work must not get the request twice. */
  private isFreshlySent(): boolean {
    return this.deadlines.stampMs - this.phaseSinceMs <= RESEND_WITHIN_MS
  }

  override onDeadline(kind: DeadlineKind): void {
    const isFirstToken = kind === 'first_byte_timeout' && this.limits.firstTokenMs > 0
    this.fail(kind, isFirstToken ? FIRST_TOKEN_TEXT : TIMEOUT_TEXT[kind])
  }

  fail(kind: UpstreamFailureKind, message: string, cause?: unknown): void {
    if (this.isDone) return
    this.leave()?.destroy()
    this.handler.onResponseError(new UpstreamFailure(kind, message, this.hasResponseStarted, { cause }))
  }

  /** Ends the exchange: stops timeouts and events. @returns the connection, which no longer belongs to the exchange */
  private leave(): Connection | null {
    const connection = this.connection
    this.isDone = true
    this.connection = null
    this.head = ''
    this.body = null
    this.deadlines.unwatch(this)
    return connection
  }
}

/** Prefers the code, since messages of failed connects to several addresses are empty. */
function describe(error: Error & { code?: string }): string {
  return error.code ?? error.message
}
