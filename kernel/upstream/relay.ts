/**
 * Relays one answer: worker to client as events, no promise and no copy on the way. A slow client pauses the
 * worker, a client that leaves aborts it, a worker that breaks becomes an error the client can see. @hot
 */
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { RelayContext, SinkListener } from '../contracts/reply-sink.ts'
import { type HeaderList, UpstreamFailure, type UpstreamRequest } from '../contracts/transport.ts'
import type { RelayOptions, StreamJudge } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { CallParts } from './call-parts.ts'
import { CallRun } from './call-run.ts'
import { isPlainEventStream, toClientHeaders } from './response-headers.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { canonicalBody, toWorkerRequest } from './worker-request.ts'

/** Announced bodies up to this size leave as one whole reply; longer ones and unannounced ones are streamed. */
const MAX_WHOLE_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)

export class Relay implements Call, CallHandler, SinkListener {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts = null
  readonly promptBytes = null
  readonly #options: RelayOptions
  readonly #parts: CallParts
  readonly #call: OpenCall
  #headers: HeaderList = []
  /** Bytes of a whole reply still to come; -1 while streaming. */
  #missing = -1
  #whole: Buffer | null = null
  /** The body so far, held back because a hook may want to see it whole; null when it is not. */
  #gathered: Buffer[] | null = null
  #gatheredBytes = 0
  /** Of an event stream, for who wants to know whether it is whole; null otherwise. */
  #judge: StreamJudge | null = null

  private constructor(ctx: RelayContext, options: RelayOptions, parts: CallParts, call: OpenCall | null) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
    this.#options = options
    this.#parts = parts
    this.#call = call ?? new CallRun(this, this, parts.balance.canonicalModel(this.model ?? ANY_MODEL), parts)
  }

  /** Never throws: what goes wrong is the client's reply. */
  static start(ctx: RelayContext, options: RelayOptions, parts: CallParts): void {
    const relay = new Relay(ctx, options, parts, null)
    ctx.setListener(relay)
    ;(relay.#call as CallRun).begin()
  }

  /** Relays the answer of a call that somebody else has opened; it is told to this handler from its head on. */
  static join(ctx: RelayContext, options: RelayOptions, parts: CallParts, call: OpenCall): Relay {
    const relay = new Relay(ctx, options, parts, call)
    ctx.setListener(relay)
    return relay
  }

  requestFor(worker: WorkerEntry, model: string): UpstreamRequest {
    const { ctx } = this
    const body = canonicalBody(ctx, this.model, model, ctx.rawBody)
    return toWorkerRequest(ctx, this.#options, this.#parts.outgoing, worker, body)
  }

  onAnswer(status: number, headers: HeaderList, contentLength: number): void {
    this.#headers = toClientHeaders(headers)
    const isEventStream = isPlainEventStream(headers)
    if (!isEventStream && contentLength >= 0 && contentLength <= MAX_WHOLE_BYTES) {
      this.#missing = contentLength
      return
    }
    this.ctx.forgetBody()
    if (this.#mayBeHeldBack(isEventStream, contentLength)) this.#gathered = []
    else this.ctx.startStream(status, this.#headers, isEventStream)
    if (isEventStream && status < 400) this.#judge = this.#options.judge?.() ?? null
  }

  /** A hook wants to see bodies whose length is not announced, or that are longer than what is sent whole anyway. */
  #mayBeHeldBack(isEventStream: boolean, contentLength: number): boolean {
    const { onResponse, maxReplyBytes } = this.ctx.hooks
    return onResponse !== null && !isEventStream && maxReplyBytes > 0 && contentLength <= maxReplyBytes
  }

  onData(chunk: Buffer): void {
    if (this.#missing >= 0) this.#collect(chunk)
    else if (this.#gathered !== null) this.#gather(this.#gathered, chunk)
    else {
      this.#judge?.take(chunk)
      if (!this.ctx.writeStream(chunk)) this.#call.pause()
    }
  }

  /** Holds back what may still be shown to a hook; more than it wants to see is streamed after all. */
  #gather(gathered: Buffer[], chunk: Buffer): void {
    gathered.push(Buffer.from(chunk))
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes <= this.ctx.hooks.maxReplyBytes) return
    this.#gathered = null
    this.ctx.startStream(this.#call.status, this.#headers, false)
    if (!this.ctx.writeStream(Buffer.concat(gathered))) this.#call.pause()
  }

  /** A body that came in one piece is sent straight from the read buffer. bench: relay-json */
  #collect(chunk: Buffer): void {
    if (this.#whole === null) {
      if (chunk.length === this.#missing) {
        this.#missing = -1
        this.#call.finish()
        this.ctx.setListener(null)
        this.ctx.sendWhole(this.#call.status, this.#headers, chunk)
        return
      }
      this.#whole = Buffer.allocUnsafe(this.#missing)
    }
    chunk.copy(this.#whole, this.#whole.length - this.#missing)
    this.#missing -= chunk.length
  }

  /** A worker that dies politely is no shorter answer: its client is told as if the connection had broken. */
  faultAtEnd(): UpstreamFailure | null {
    if (this.#judge === null || this.#judge.isWhole()) return null
    const what = 'it ended before its last event'
    const error = upstreamErrors.read_response_body_failed(what)
    return new UpstreamFailure('reset', what, true, { error })
  }

  /** Nothing more comes or goes. */
  #leave(): void {
    this.ctx.setListener(null)
    this.#judge?.leave()
    this.#judge = null
  }

  onEnd(): void {
    const { ctx } = this
    this.#leave()
    if (this.#gathered !== null)
      ctx.sendWhole(this.#call.status, this.#headers, Buffer.concat(this.#gathered))
    else if (this.#missing === -1) ctx.endStream()
    else ctx.sendWhole(this.#call.status, this.#headers, this.#whole ?? NO_BYTES)
  }

  onFailed(error: unknown): void {
    this.#leave()
    this.ctx.fail(error)
  }

  onClientDrain(): void {
    this.#call.resume()
  }

  onCancel(): void {
    this.#leave()
    this.#call.abort()
  }
}

/** Model id that stands for "any worker". */
export const ANY_MODEL = 'unknown'
