/**
 * Relays a worker's response to the client by callbacks, without promises or copies. A slow client pauses the worker, a
 * client that disconnects aborts it, a worker that fails becomes an error for the client. @hot
 */
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext, SinkListener } from '../contracts/relay-context.ts'
import type { RelayOptions } from '../contracts/relay-options.ts'
import type { ObservedEnd, ResponseFormat, ResponseObserver } from '../contracts/response-format.ts'
import { type HeaderList, UpstreamFailure, type UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { filterHeaders, headerOf } from '../wire/headers.ts'
import { readRefusal } from '../wire/worker-message.ts'
import type { CallParts } from './call-parts.ts'
import { CallRun } from './call-run.ts'
import { isPlainEventStream, isStream } from './response-headers.ts'
import {
  type CountedParts,
  countParts,
  estimatedUsage,
  estimatorFor,
  keepsBody,
  StreamedText,
} from './unreported-usage.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { canonicalBody, toWorkerRequest, withParameters } from './worker-request.ts'

/** Bodies with a Content-Length up to this are sent as one response; longer ones and those without it are streamed. */
const MAX_WHOLE_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)
/** Beginning of an error body that is read for its message; of one declared as JSON, up to MAX_WHOLE_BYTES. */
const MAX_REFUSAL_BYTES = 65_536

export class Relay implements Call, CallHandler, SinkListener {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream: boolean
  readonly worker: WorkerEntry | null
  readonly tokenIds = null
  readonly accepts: Call['accepts']
  readonly promptBytes = null
  readonly #options: RelayOptions
  readonly #parts: CallParts
  readonly #call: OpenCall
  #headers: HeaderList = []
  /** Remaining bytes of an unstreamed response; -1 while streaming. */
  #missing = -1
  #whole: Buffer | null = null
  /** The body so far, held back for an onResponse hook; null if it is not. */
  #gathered: Buffer[] | null = null
  #gatheredBytes = 0
  /** An error body so far; null for other bodies. */
  #refusal: Buffer[] | null = null
  /** The client gets the head of this event stream, and no data yet: another worker may continue it. */
  keepsHead = false
  /** Of a response that is passed on in parts; null before, and from its end on. */
  #observer: ResponseObserver | null = null
  #end: ObservedEnd | null = null
  /** The client did not request the usage that the worker is asked for. */
  #removesUsage = false
  /** Null without an observer, and if usage is not counted. */
  #counts: CountedParts | null = null

  private constructor(ctx: RelayContext, options: RelayOptions, parts: CallParts, call: OpenCall | null) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
    this.accepts = options.accepts ?? null
    this.#options = options
    this.#parts = parts
    this.#call = call ?? new CallRun(this, this, parts)
  }

  /** Never throws: errors become the client's response. */
  static start(ctx: RelayContext, options: RelayOptions, parts: CallParts): void {
    const relay = new Relay(ctx, options, parts, null)
    ctx.setListener(relay)
    if (relay.stream && options.opensAfterMs !== undefined) ctx.openAfter(options.opensAfterMs)
    ;(relay.#call as CallRun).begin()
  }

  /** Relays the response of an open call, which passes its events to the relay from the head on. */
  static join(ctx: RelayContext, options: RelayOptions, parts: CallParts, call: OpenCall): Relay {
    const relay = new Relay(ctx, options, parts, call)
    ctx.setListener(relay)
    return relay
  }

  get needsStream(): boolean {
    return this.#options.stream === true || this.ctx.isOpenedEarly
  }

  requestFor(
    worker: WorkerEntry,
    model: string,
    _attempt: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest {
    const { ctx } = this
    const edit = this.stream ? (this.#counted?.askForUsage?.(ctx.rawBody, ctx.peek()) ?? null) : null
    this.#removesUsage = edit !== null
    let body = canonicalBody(ctx, this.model, model, edit)
    if (parameters !== null) body = withParameters(body, parameters)
    return toWorkerRequest(ctx, this.#options, this.#parts.outgoing, worker, body)
  }

  /** Undefined if usage is not counted, or not reported. */
  get #counted(): ResponseFormat | undefined {
    return this.#parts.countsUsage ? this.#options.format : undefined
  }

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    this.#headers = this.#parts.clientHeaders.of(headers)
    const isEventStream = isPlainEventStream(headers)
    if (status >= 400 && !isEventStream && headerOf(headers, 'content-encoding') === undefined) {
      this.#refusal = []
      return
    }
    if (!isEventStream && contentLength >= 0 && contentLength <= MAX_WHOLE_BYTES) {
      this.#missing = contentLength
      return
    }
    this.keepsHead = isEventStream && status < 400
    if (status < 400) this.#observe(isEventStream, isEventStream || isStream(headers))
    // Sent again to the worker that continues the stream.
    if (!this.keepsHead) this.ctx.forgetBody()
    if (this.#isHeldBack(isEventStream, contentLength)) this.#gathered = []
    else this.ctx.startStream(status, this.#headers, isEventStream)
  }

  /** @param isStreamed events, or lines of JSON */
  #observe(isEventStream: boolean, isStreamed: boolean): void {
    const { ctx } = this
    const format = isStreamed ? this.#options.format : this.#counted
    if (format === undefined) return
    // Of a stream that this worker continues.
    this.#counts?.text?.release()
    this.#end = null
    const requestBytes = ctx.rawBody.length
    const { hasOutput = true, textOf } = format
    this.#observer = format.observe({
      request: ctx,
      isEventStream,
      removesUsage: this.#removesUsage,
    })
    if (!this.#parts.countsUsage) return
    const estimator = isStreamed && textOf !== undefined ? estimatorFor(ctx, this.#parts.estimator) : null
    const text = textOf === undefined || estimator === null ? null : new StreamedText(textOf)
    this.#counts = { requestBytes, hasOutput, estimator, text }
  }

  /** Bodies without a Content-Length or above MAX_WHOLE_BYTES are held back for onResponse, up to its own limit. */
  #isHeldBack(isEventStream: boolean, contentLength: number): boolean {
    const { onResponse, maxResponseBytes } = this.ctx.hooks
    return onResponse !== null && !isEventStream && maxResponseBytes > 0 && contentLength <= maxResponseBytes
  }

  onData(chunk: Buffer): void {
    if (this.#refusal !== null) this.#readRefusal(this.#refusal, chunk)
    else if (this.#missing >= 0) this.#collect(chunk)
    else this.#pass(chunk)
  }

  #pass(chunk: Buffer): void {
    this.#counts?.text?.push(chunk)
    const bytes = this.#observer === null ? chunk : this.#observer.chunk(chunk)
    if (this.#gathered !== null) {
      this.#gather(this.#gathered, bytes)
      return
    }
    if (this.keepsHead) {
      this.keepsHead = false
      if (!keepsBody(this.ctx, this.#counts)) this.ctx.forgetBody()
    }
    if (bytes.length > 0 && !this.ctx.writeStream(bytes)) this.#call.pause()
  }

  #readRefusal(refusal: Buffer[], chunk: Buffer): void {
    refusal.push(Buffer.from(chunk))
    this.#gatheredBytes += chunk.length
    const isJson = headerOf(this.#headers, 'content-type')?.includes('json') === true
    if (this.#gatheredBytes < (isJson ? MAX_WHOLE_BYTES : MAX_REFUSAL_BYTES)) return
    this.#detach()
    this.#call.finish()
    this.#call.abort()
    this.#refuse(refusal)
  }

  /** An error object that every client can read passes unchanged; all else becomes an error in the format of the route. */
  #refuse(refusal: readonly Buffer[]): void {
    const { status } = this.#call
    const body = Buffer.concat(refusal)
    const { message, isReadable, code, param, type } = readRefusal(status, body)
    if (isReadable && !this.ctx.isOpenedEarly) this.ctx.sendWhole(status, this.#headers, body)
    else
      this.ctx.fail(
        upstreamErrors.worker_refused.with(
          { status, headers: withoutDescription(this.#headers), code, param, type },
          message,
        ),
      )
  }

  /** Holds back the body for a hook; above the hook's limit it is streamed. */
  #gather(gathered: Buffer[], chunk: Buffer): void {
    gathered.push(Buffer.from(chunk))
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes <= this.ctx.hooks.maxResponseBytes) return
    this.#gathered = null
    this.ctx.startStream(this.#call.status, this.#headers, false)
    if (!this.ctx.writeStream(Buffer.concat(gathered))) this.#call.pause()
  }

  /** A body that arrives in one chunk is sent from the read buffer. bench: relay-json */
  #collect(chunk: Buffer): void {
    if (this.#whole === null) {
      if (chunk.length === this.#missing) {
        this.#missing = -1
        this.#countBody(chunk)
        this.#call.finish()
        this.ctx.setListener(null)
        this.#sendBody(chunk)
        return
      }
      this.#whole = Buffer.allocUnsafe(this.#missing)
    }
    chunk.copy(this.#whole, this.#whole.length - this.#missing)
    this.#missing -= chunk.length
  }

  #sendBody(body: Buffer): void {
    const { status } = this.#call
    const error = status < 400 ? (this.#options.format?.errorOf?.(body) ?? null) : null
    if (error === null) this.ctx.sendWhole(status, this.#headers, body)
    else this.ctx.fail(error)
  }

  /** A stream that ended in order but before its last event fails as if the connection had broken. */
  faultAtEnd(): UpstreamFailure | null {
    if (this.#endOnce()?.end !== 'cut') {
      // Before the call finishes, so that metrics have the usage.
      if (this.#whole !== null) this.#countBody(this.#whole)
      this.#countParts()
      return null
    }
    const what = 'it ended before its last event'
    const error = upstreamErrors.read_response_body_failed(what)
    return new UpstreamFailure('reset', what, true, { error })
  }

  hasSentError(): boolean {
    return this.#endOnce()?.end === 'error'
  }

  /** Null for a response without an observer. */
  #endOnce(): ObservedEnd | null {
    const observer = this.#observer
    this.#observer = null
    if (observer !== null) this.#end = observer.end()
    return this.#end
  }

  #countBody(body: Buffer): void {
    const format = this.#counted
    if (format === undefined || this.#call.status >= 400) return
    const usage = format.usageOf(body)
    this.#call.used(usage ?? estimatedUsage(format, this.ctx.rawBody.length, body.length))
  }

  /** Once: what was reported before the end of a response, also of one that broke off. */
  #countParts(): void {
    const end = this.#endOnce()
    const counts = this.#counts
    if (end === null || counts === null) return
    this.#counts = null
    countParts(this.#call, this.ctx, counts, end)
    counts.text?.release()
  }

  /** Detaches from the client. */
  #detach(): void {
    this.ctx.setListener(null)
    this.#countParts()
  }

  onEnd(): void {
    const { ctx } = this
    this.#detach()
    if (this.#refusal !== null) this.#refuse(this.#refusal)
    else if (this.#gathered !== null)
      ctx.sendWhole(this.#call.status, this.#headers, Buffer.concat(this.#gathered))
    else if (this.#missing === -1) ctx.endStream(this.#end?.rest, this.#end?.end === 'error')
    else this.#sendBody(this.#whole ?? NO_BYTES)
  }

  onFailed(error: unknown): void {
    this.#detach()
    this.ctx.fail(error)
  }

  onClientDrain(): void {
    this.#call.resume()
  }

  onCancel(): void {
    try {
      this.#detach()
    } finally {
      this.#call.abort()
    }
  }
}

/** Headers that do not describe the body, which another one replaces, and no request id: the format has its own. */
function withoutDescription(headers: HeaderList): HeaderList {
  return filterHeaders(headers, (name) => !name.startsWith('content-') && name !== 'request-id')
}
