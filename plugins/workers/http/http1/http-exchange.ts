/** @hot One request to a worker and its response: between the caller's handler, the limits and the connection. */
import {
  type Exchange,
  type HeaderList,
  UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import type { Connection } from './connection.ts'
import type { ConnectionPool, PooledExchange } from './connection-pool.ts'
import { type DeadlineKind, type Deadlines, TimedExchange } from './deadlines.ts'

const TIMEOUT_TEXT: Readonly<Record<DeadlineKind, string>> = {
  connect: 'no connection within the connect limit',
  first_byte_timeout: 'no response within the first-byte limit',
  idle_timeout: 'silence within the response for longer than the idle limit',
  request_timeout: 'the exchange took longer than the request limit',
}

/** Milliseconds after which a broken connection is a failure of the worker, not of the keep-alive. */
const RESEND_WITHIN_MS = 1_000

/** What is sent. */
export interface RequestBytes {
  /** For the latin1 encoding. */
  readonly head: string
  readonly body: Buffer | null
  readonly isHeadRequest: boolean
}

export class HttpExchange extends TimedExchange implements Exchange, PooledExchange {
  /** Set by the pool; null before and after. */
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
  private readonly pool: ConnectionPool
  private readonly deadlines: Deadlines
  private readonly limits: UpstreamLimits
  private readonly handler: UpstreamHandler

  constructor(
    request: RequestBytes,
    pool: ConnectionPool,
    deadlines: Deadlines,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ) {
    super()
    this.head = request.head
    this.body = request.body
    this.isHeadRequest = request.isHeadRequest
    this.pool = pool
    this.deadlines = deadlines
    this.limits = limits
    this.handler = handler
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
    this.deadlines.enterPhase(this, 'first_byte_timeout', this.limits.firstByteMs)
  }

  /** Bytes of the response have arrived. */
  onBytes(): void {
    if (this.hasHead) {
      this.phaseSinceMs = this.deadlines.stampMs
      return
    }
    if (this.hasResponseStarted) return
    this.hasResponseStarted = true
    this.head = ''
    this.body = null
    // Until the head is whole its bytes win no time: one that drips is as late as none.
    if (this.limits.firstByteMs === 0) this.deadlines.enterPhase(this, 'idle_timeout', this.limits.idleMs)
  }

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    this.hasHead = true
    this.deadlines.enterPhase(this, 'idle_timeout', this.limits.idleMs)
    this.handler.onResponseStart(status, headers, contentLength)
  }

  onBody(chunk: Buffer): void {
    this.handler.onResponseData(chunk)
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

  /** The connection broke, or never came about. */
  onConnectionLost(connection: Connection, cause: Error | undefined): void {
    if (this.isDone) return
    this.connection = null
    const reason = cause === undefined ? 'the worker closed it' : describe(cause)
    if (!connection.isConnected) {
      this.fail('connect', `cannot connect to the worker: ${reason}`, cause)
    } else if (
      this.pool.resends &&
      connection.isReused &&
      !this.hasResponseStarted &&
      !this.wasSentAgain &&
      this.isFreshlySent()
    ) {
      // The worker closed an idle connection while the request was on its way: it has not read it.
      this.wasSentAgain = true
      this.pool.dispatchFresh(this)
    } else {
      this.fail('reset', `the connection broke before the response was whole: ${reason}`, cause)
    }
  }

  /** Later than this it is no keep-alive race: the worker may have begun the work, and must not do it twice. */
  private isFreshlySent(): boolean {
    return this.deadlines.stampMs - this.phaseSinceMs <= RESEND_WITHIN_MS
  }

  override onDeadline(kind: DeadlineKind): void {
    this.fail(kind, TIMEOUT_TEXT[kind])
  }

  fail(kind: UpstreamFailureKind, message: string, cause?: unknown): void {
    if (this.isDone) return
    this.leave()?.destroy()
    this.handler.onResponseError(new UpstreamFailure(kind, message, this.hasResponseStarted, { cause }))
  }

  /** Over: no limit counts any more, and no event is passed on. @returns the connection, no longer this exchange's */
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

/** The error's code where it has one: messages of failed connects to several addresses are empty. */
function describe(error: Error & { code?: string }): string {
  return error.code ?? error.message
}
