/**
 * Relays one answer: worker to client as events, no promise and no copy on the way. A slow client pauses the
 * worker, a client that leaves aborts it, a worker that breaks becomes an error the client can see. @hot
 */
import type { Attempt } from '../balance/worker-balance.ts'
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
  /** The body so far, held back because a hook may want to see it whole; null when it is not. */
  #gathered: Buffer[] | null = null
  #gatheredBytes = 0

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
    if (this.#mayBeHeldBack(isEventStream, contentLength)) this.#gathered = []
    else this.#ctx.startStream(status, this.#headers, isEventStream)
  }

  /** A hook wants to see bodies whose length is not announced, or that are longer than what is sent whole anyway. */
  #mayBeHeldBack(isEventStream: boolean, contentLength: number): boolean {
    const { onResponse, maxReplyBytes } = this.#ctx.hooks
    return onResponse !== null && !isEventStream && maxReplyBytes > 0 && contentLength <= maxReplyBytes
  }

  onResponseData(chunk: Buffer): void {
    if (this.#missing >= 0) this.#collect(chunk)
    else if (this.#gathered !== null) this.#gather(this.#gathered, chunk)
    else if (!this.#ctx.writeStream(chunk)) this.#exchange?.pause()
  }

  /** Holds back what may still be shown to a hook; more than it wants to see is streamed after all. */
  #gather(gathered: Buffer[], chunk: Buffer): void {
    gathered.push(Buffer.from(chunk))
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes <= this.#ctx.hooks.maxReplyBytes) return
    this.#gathered = null
    this.#ctx.startStream(this.#status, this.#headers, false)
    if (!this.#ctx.writeStream(Buffer.concat(gathered))) this.#exchange?.pause()
  }

  /** A body that came in one piece is sent straight from the read buffer. bench: relay-json */
  #collect(chunk: Buffer): void {
    if (this.#whole === null) {
      if (chunk.length === this.#missing) {
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
    if (this.#isOver) return
    this.#over(this.#status)
    if (this.#gathered !== null)
      this.#ctx.sendWhole(this.#status, this.#headers, Buffer.concat(this.#gathered))
    else if (this.#missing === -1) this.#ctx.endStream()
    else this.#ctx.sendWhole(this.#status, this.#headers, this.#whole ?? NO_BYTES)
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.#isOver) return
    this.#meter?.failed(failure, this.#status)
    this.#onFailure(this.#ctx, this.#attempt, failure)
    this.#giveUp(toUpstreamError(failure, this.#isAnswering))
  }

  onClientDrain(): void {
    this.#exchange?.resume()
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
