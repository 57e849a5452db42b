/**
 * Relays one answer: worker to client as events, no promise and no copy on the way. A slow client pauses the
 * worker, a client that leaves aborts it, a worker that breaks becomes an error the client can see. @hot
 */
import type { Attempt } from '../balance/worker-balance.ts'
import type { IncomingResponse } from '../contracts/hook.ts'
import type { RelayContext, SinkListener } from '../contracts/reply-sink.ts'
import type {
  Exchange,
  HeaderList,
  Transport,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamLimits,
  UpstreamRequest,
} from '../contracts/transport.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import type { RelayMeter } from './relay-meter.ts'
import { isPlainEventStream, toClientHeaders } from './response-headers.ts'
import { toUpstreamError } from './upstream-errors.ts'

/** Announced bodies up to this size leave as one whole reply; longer ones and unannounced ones are streamed. */
const MAX_WHOLE_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)

type OnResponse = NonNullable<RelayContext['hooks']['onResponse']>

/** Told why an attempt failed, for the log. */
export type FailureListener = (ctx: RelayContext, attempt: Attempt, failure: UpstreamFailure) => void

export class Relay implements UpstreamHandler, SinkListener {
  readonly #ctx: RelayContext
  readonly #attempt: Attempt
  readonly #meter: RelayMeter | null
  readonly #onFailure: FailureListener
  #exchange: Exchange | null = null
  #isAnswering = false
  #isOver = false
  #status = 0
  #headers: HeaderList = []
  /** Bytes of a whole reply still to come; -1 while streaming. */
  #missing = -1
  #whole: Buffer | null = null
  /** Chunks that came while an asynchronous hook held the head back; null when nothing is held. */
  #held: Buffer[] | null = null
  #endedWhileHeld = false

  constructor(ctx: RelayContext, attempt: Attempt, meter: RelayMeter | null, onFailure: FailureListener) {
    this.#ctx = ctx
    this.#attempt = attempt
    this.#meter = meter
    this.#onFailure = onFailure
    ctx.workerUrl = attempt.worker.url
    ctx.setListener(this)
  }

  send(transport: Transport, request: UpstreamRequest, limits: UpstreamLimits): void {
    if (this.#isOver) return
    this.#exchange = transport.send(this.#attempt.worker, request, limits, this)
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.#isAnswering = true
    this.#status = status
    this.#headers = toClientHeaders(headers)
    this.#meter?.answered(status)
    const isEventStream = isPlainEventStream(headers)
    if (!isEventStream && contentLength >= 0 && contentLength <= MAX_WHOLE_BYTES) {
      this.#missing = contentLength
      return
    }
    this.#ctx.forgetBody()
    const { onResponse } = this.#ctx.hooks
    if (onResponse === null) this.#ctx.startStream(status, this.#headers, isEventStream)
    else this.#hookStream(onResponse, isEventStream)
  }

  #hookStream(onResponse: OnResponse, isEventStream: boolean): void {
    const response: IncomingResponse = { status: this.#status, headers: this.#headers, body: null }
    const pending = this.#runOnResponse(onResponse, response)
    if (!(pending instanceof Promise)) {
      this.#ctx.startStream(response.status, response.headers, isEventStream)
      return
    }
    this.#held = []
    this.#exchange?.pause()
    pending
      .then(() => this.#releaseHeld(response, isEventStream))
      .catch((error: unknown) => this.#giveUp(error))
  }

  /** What a hook throws is this request's error, not the thread's end. */
  #runOnResponse(onResponse: OnResponse, response: IncomingResponse): void | Promise<void> {
    try {
      const pending = onResponse(this.#ctx, response)
      if (pending instanceof Promise) return pending.then(() => assertSendable(response))
      assertSendable(response)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #releaseHeld(response: IncomingResponse, isEventStream: boolean): void {
    const held = this.#held ?? []
    this.#held = null
    if (this.#isOver) return
    this.#ctx.startStream(response.status, response.headers, isEventStream)
    let isWritable = true
    for (const chunk of held) {
      isWritable = this.#write(chunk)
      if (this.#isOver) return
    }
    if (this.#endedWhileHeld) this.onResponseEnd()
    else if (isWritable) this.#exchange?.resume()
  }

  onResponseData(chunk: Buffer): void {
    if (this.#missing >= 0) this.#collect(chunk)
    else if (this.#held !== null) this.#held.push(Buffer.from(chunk))
    else if (!this.#write(chunk)) this.#exchange?.pause()
  }

  #write(chunk: Buffer): boolean {
    const { onChunk } = this.#ctx.hooks
    if (onChunk === null) return this.#ctx.writeStream(chunk)
    try {
      return this.#ctx.writeStream(onChunk(this.#ctx, chunk))
    } catch (error) {
      this.#giveUp(error)
      return true
    }
  }

  /** A body that came in one piece is sent straight from the read buffer. bench: relay-json */
  #collect(chunk: Buffer): void {
    if (this.#whole === null) {
      if (chunk.length === this.#missing && this.#ctx.hooks.onResponse === null) {
        this.#missing = -1
        this.#over(this.#status)
        this.#ctx.sendWhole(this.#status, this.#headers, chunk)
        return
      }
      this.#whole = Buffer.allocUnsafe(this.#missing)
    }
    chunk.copy(this.#whole, this.#whole.length - this.#missing)
    this.#missing -= chunk.length
  }

  onResponseEnd(): void {
    if (this.#held !== null) {
      this.#endedWhileHeld = true
      return
    }
    if (this.#isOver) return
    if (this.#missing === -1) {
      this.#over(this.#status)
      this.#ctx.endStream()
      return
    }
    this.#over(this.#status)
    this.#sendCollected(this.#whole ?? NO_BYTES)
  }

  #sendCollected(body: Buffer): void {
    const { onResponse } = this.#ctx.hooks
    if (onResponse === null) {
      this.#ctx.sendWhole(this.#status, this.#headers, body)
      return
    }
    const response: IncomingResponse = { status: this.#status, headers: this.#headers, body }
    const pending = this.#runOnResponse(onResponse, response)
    const send = () => this.#ctx.sendWhole(response.status, response.headers, response.body ?? NO_BYTES)
    if (pending instanceof Promise) pending.then(send).catch((error: unknown) => this.#ctx.fail(error))
    else send()
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.#isOver) return
    this.#held = null
    this.#meter?.failed(failure, this.#status)
    this.#onFailure(this.#ctx, this.#attempt, failure)
    this.#giveUp(toUpstreamError(failure, this.#isAnswering))
  }

  onClientDrain(): void {
    if (this.#held === null) this.#exchange?.resume()
  }

  onCancel(): void {
    this.#exchange?.abort()
    this.#over(0)
  }

  /** Before the request was sent, or when a hook threw. */
  #giveUp(error: unknown): void {
    this.#exchange?.abort()
    this.#over(error instanceof GatewayError ? error.status : 500)
    this.#ctx.fail(error)
  }

  /**
   * The attempt leaves the in-flight count, exactly once.
   * @param status of the reply; 0 when the client left first
   */
  #over(status: number): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#ctx.setListener(null)
    this.#attempt.release()
    this.#meter?.done(this.#ctx, status)
  }

  /** A hook that ran before the request was sent failed. */
  fail(error: unknown): void {
    this.#giveUp(error)
  }
}

/** What a hook left behind is checked before it is sent, since half of a head cannot be taken back. */
function assertSendable({ status, headers, body }: IncomingResponse): void {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`an onResponse hook set the status to ${status}`)
  if (headers.length % 2 !== 0 || !headers.every((text) => typeof text === 'string'))
    throw new TypeError('an onResponse hook left headers that are no list of names and values')
  if (body !== null && !Buffer.isBuffer(body))
    throw new TypeError('an onResponse hook set a body that is no Buffer')
}
