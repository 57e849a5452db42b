/**
 * Relays a worker's response to the client by callbacks, without promises or copies. A slow client pauses the worker, a
 * client that disconnects aborts it, a worker that fails becomes an error for the client. @hot
 */
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext, SinkListener } from '../contracts/relay-context.ts'
import type { RelayOptions, StreamCompletionCheck } from '../contracts/relay-options.ts'
import { type HeaderList, UpstreamFailure, type UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { filterHeaders, headerOf } from '../wire/headers.ts'
import { readRefusal } from '../wire/worker-message.ts'
import { BodyUsage } from './body-usage.ts'
import type { CallParts } from './call-parts.ts'
import { CallRun } from './call-run.ts'
import { choiceScope, usageOfChoices } from './choice-usage.ts'
import { isPlainEventStream } from './response-headers.ts'
import { StreamUsage } from './stream-usage.ts'
import { usageOfBody, usageOfMetaInfo } from './token-usage.ts'
import { countStreamUsage, estimatedUsage, estimatorFor, keepsBody } from './unreported-usage.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { canonicalBody, toWorkerRequest, usageEdit, withParameters } from './worker-request.ts'

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
  readonly accepts = null
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
  /** Completion check of an event stream; null without one. */
  #check: StreamCompletionCheck | null = null
  /** The client did not request the usage that the worker is asked for. */
  #removesUsage = false
  /** Usage of an event stream; null for other bodies, and if it is not counted. */
  #streamUsage: StreamUsage | null = null
  /** Usage of a body that is neither collected nor an event stream; null if it is not counted. */
  #bodyUsage: BodyUsage | null = null
  /** The last event of the worker's stream is an error. */
  #endsInError = false
  /** Bytes that were held back until the stream ended. */
  #rest: Buffer = NO_BYTES

  private constructor(ctx: RelayContext, options: RelayOptions, parts: CallParts, call: OpenCall | null) {
    this.ctx = ctx
    this.model = options.model === undefined ? ctx.peek().model : options.model
    this.stream = options.stream === undefined ? ctx.peek().stream : options.stream
    this.worker = options.worker ?? null
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
    const edit = this.#usage === 'on_request' && this.stream ? usageEdit(ctx.rawBody, ctx.peek()) : null
    this.#removesUsage = edit !== null
    let body = canonicalBody(ctx, this.model, model, edit)
    if (parameters !== null) body = withParameters(body, parameters)
    return toWorkerRequest(ctx, this.#options, this.#parts.outgoing, worker, body)
  }

  /** Undefined if usage is not counted, or not reported. */
  get #usage(): RelayOptions['usage'] {
    return this.#parts.countsUsage ? this.#options.usage : undefined
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
    const usage = this.#usage
    if (usage !== undefined && status < 400) {
      const requestBytes = this.ctx.rawBody.length
      if (isEventStream) {
        // Of a stream that another worker continues.
        this.#streamUsage?.text?.release()
        const estimator = estimatorFor(this.ctx, this.#parts.estimator)
        const scope = choiceScope(this.#parts, this.#call.worker, this.ctx)
        this.#streamUsage = new StreamUsage(usage, this.#removesUsage, requestBytes, estimator, scope)
      } else this.#bodyUsage = new BodyUsage(usage, requestBytes)
    }
    // Sent again to the worker that continues the stream.
    if (!this.keepsHead) this.ctx.forgetBody()
    if (this.#isHeldBack(isEventStream, contentLength)) this.#gathered = []
    else this.ctx.startStream(status, this.#headers, isEventStream)
    if (isEventStream && status < 400) this.#check = this.#options.checkCompletion?.(this.ctx) ?? null
  }

  /** Bodies without a Content-Length or above MAX_WHOLE_BYTES are held back for onResponse, up to its own limit. */
  #isHeldBack(isEventStream: boolean, contentLength: number): boolean {
    const { onResponse, maxResponseBytes } = this.ctx.hooks
    return onResponse !== null && !isEventStream && maxResponseBytes > 0 && contentLength <= maxResponseBytes
  }

  onData(chunk: Buffer): void {
    this.#bodyUsage?.push(chunk)
    if (this.#refusal !== null) this.#readRefusal(this.#refusal, chunk)
    else if (this.#missing >= 0) this.#collect(chunk)
    else if (this.#gathered !== null) this.#gather(this.#gathered, chunk)
    else {
      if (this.keepsHead) {
        this.keepsHead = false
        if (!keepsBody(this.ctx, this.#streamUsage)) this.ctx.forgetBody()
      }
      const counted = this.#streamUsage === null ? chunk : this.#streamUsage.pass(chunk)
      const bytes = this.#check === null ? counted : this.#check.pass(counted)
      if (bytes.length > 0 && !this.ctx.writeStream(bytes)) this.#call.pause()
    }
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
    const error = status < 400 ? (this.#options.checkBody?.(body) ?? null) : null
    if (error === null) this.ctx.sendWhole(status, this.#headers, body)
    else this.ctx.fail(error)
  }

  /** A stream that ended in order but before its last event fails as if the connection had broken. */
  faultAtEnd(): UpstreamFailure | null {
    const check = this.#check
    if (this.#streamUsage !== null) this.#rest = this.#streamUsage.rest()
    if (check !== null && this.#rest.length > 0) this.#rest = check.pass(this.#rest)
    const end = check === null ? 'complete' : check.end()
    this.#endsInError = end === 'error'
    if (end !== 'cut') {
      // Before the call finishes, so that metrics have the usage.
      if (this.#whole !== null) this.#countBody(this.#whole)
      if (check !== null) this.#rest = Buffer.concat([this.#rest, check.rest()])
      this.#countStream()
      return null
    }
    const what = 'it ended before its last event'
    const error = upstreamErrors.read_response_body_failed(what)
    return new UpstreamFailure('reset', what, true, { error })
  }

  hasSentError(): boolean {
    return this.#check?.end() === 'error'
  }

  #countBody(body: Buffer): void {
    const report = this.#usage
    if (report === undefined || this.#call.status >= 400) return
    const { rawBody } = this.ctx
    let usage = report === 'meta_info' ? usageOfMetaInfo(body) : usageOfBody(body)
    if (usage !== null && choiceScope(this.#parts, this.#call.worker, this.ctx) !== null)
      usage = usageOfChoices(usage, body, rawBody)
    this.#call.used(usage ?? estimatedUsage(report, rawBody.length, body.length))
  }

  #countPassed(body: BodyUsage): void {
    const report = this.#usage
    if (report === undefined || body.byteCount === 0) return
    this.#call.used(body.usage() ?? estimatedUsage(report, body.requestBytes, body.byteCount))
  }

  /** Once: what was reported before the end of a stream, also of one that broke off. */
  #countStream(): void {
    const stream = this.#streamUsage
    const body = this.#bodyUsage
    this.#streamUsage = null
    this.#bodyUsage = null
    if (body !== null) this.#countPassed(body)
    if (stream === null) return
    countStreamUsage(this.#call, this.ctx, stream)
    stream.text?.release()
  }

  /** Detaches from the client. */
  #detach(): void {
    this.#countStream()
    this.ctx.setListener(null)
    this.#check?.leave()
    this.#check = null
  }

  onEnd(): void {
    const { ctx } = this
    this.#detach()
    if (this.#refusal !== null) this.#refuse(this.#refusal)
    else if (this.#gathered !== null)
      ctx.sendWhole(this.#call.status, this.#headers, Buffer.concat(this.#gathered))
    else if (this.#missing === -1) ctx.endStream(this.#rest, this.#endsInError)
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
    this.#detach()
    this.#call.abort()
  }
}

/** Headers that do not describe the body, which another one replaces, and no request id: the format has its own. */
function withoutDescription(headers: HeaderList): HeaderList {
  return filterHeaders(headers, (name) => !name.startsWith('content-') && name !== 'request-id')
}
