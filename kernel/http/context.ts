/**
 * The request as handlers and hooks see it, until the end of its response, which is written to a `ResponseSink`, directly or
 * through the hooks of its route. `fail.ts` renders errors. @hot
 */
import type { ErrorEncoder } from '../contracts/error-format.ts'
import type { SinkListener } from '../contracts/relay-context.ts'
import {
  type ExtraHeaders,
  type StreamOptions,
  type StreamWriter,
  WARNING_HEADER,
} from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { headerOf } from '../wire/headers.ts'
import { failHookedResponse, failRequest } from './fail.ts'
import { HookedResponse } from './hooked-response.ts'
import { IncomingRequest } from './incoming-request.ts'
import { assertHeaders } from './response-check.ts'
import { ResponseFlow } from './response-flow.ts'
import { finishRequest, type ServedRequest } from './server-parts.ts'
import { BatchedStreamWriter } from './stream-writer.ts'

const EMPTY = Buffer.alloc(0)
const EVENT_STREAM = 'text/event-stream'
const SSE_HEADERS = ['content-type', `${EVENT_STREAM}; charset=utf-8`, 'cache-control', 'no-cache']
/** A comment, which makes the head leave. */
const WAITING = ': waiting for the worker\n\n'

export class HttpContext extends IncomingRequest implements ServedRequest {
  errorCode: string | null = null
  isFailing = false
  isAdmitted = false
  encodeError: ErrorEncoder | null = null
  openIndex = -1

  opensAtMs = 0
  isOpenedEarly = false
  #earlyHeaders: ExtraHeaders = []
  #warnings: string[] | null = null
  #hasEventStream = false

  #abortListeners: (() => void)[] | null = null
  #cancelListeners: (() => void)[] | null = null
  #listener: SinkListener | null = null
  #flow: ResponseFlow | null = null
  /** Hooks of the response; null before it begins and for routes without such hooks. */
  #hooked: HookedResponse | null = null
  #bypassesHooks = this.hooks.onResponse === null && this.hooks.onEvents === null

  get status(): number {
    return this.sink.status
  }

  get bytesOut(): number {
    return this.sink.bytesOut
  }

  get firstByteAtMs(): number {
    return this.sink.firstByteAtMs
  }

  get isAborted(): boolean {
    return this.sink.isAborted
  }

  get isDone(): boolean {
    return this.sink.isDone
  }

  json(status: number, value: unknown, headers?: ExtraHeaders): void {
    this.send(status, 'application/json', JSON.stringify(value), headers)
  }

  text(status: number, body: string, headers?: ExtraHeaders): void {
    this.send(status, 'text/plain; charset=utf-8', body, headers)
  }

  send(status: number, contentType: string | null, body: string | Buffer, headers?: ExtraHeaders): void {
    if (headers !== undefined) assertHeaders(headers, 'a handler')
    this.#send(status, contentType, body, headers)
  }

  #send(status: number, contentType: string | null, body: string | Buffer, headers?: ExtraHeaders): void {
    const all = this.#withWarnings(headers)
    if (this.#bypassesHooks) this.sink.send(status, contentType, all, body)
    else if (!this.isDone) this.#throughHooks().sendWhole(status, contentType, all, body)
  }

  sendWhole(status: number, headers: HeaderList, body: Buffer): void {
    this.#send(status, null, body, headers)
  }

  stream(status: number, headers: ExtraHeaders, options?: StreamOptions): StreamWriter {
    assertHeaders(headers, 'a handler')
    const type = headerOf(headers, 'content-type')
    this.encodeError = options?.encodeError ?? null
    this.startStream(status, [...headers], type?.toLowerCase().startsWith(EVENT_STREAM) === true)
    return new BatchedStreamWriter(this)
  }

  sse(status = 200, headers: ExtraHeaders = []): StreamWriter {
    if (headerOf(headers, 'content-type') !== undefined)
      throw new TypeError('ctx.sse sends text/event-stream; use ctx.stream for another content type')
    return this.stream(status, [...SSE_HEADERS, ...headers])
  }

  get flow(): ResponseFlow {
    this.#flow ??= new ResponseFlow()
    return this.#flow
  }

  warn(warning: string): void {
    assertHeaders([WARNING_HEADER, warning], 'a warning')
    this.#warnings ??= []
    this.#warnings.push(warning)
  }

  takeWarnings(): readonly string[] {
    const warnings = this.#warnings ?? []
    this.#warnings = null
    return warnings
  }

  #withWarnings(headers: ExtraHeaders | undefined): ExtraHeaders | null {
    if (this.#warnings === null) return headers ?? null
    return [...(headers ?? []), WARNING_HEADER, this.takeWarnings().join(', ')]
  }

  openAfter(ms: number, headers: ExtraHeaders = []): void {
    assertHeaders(headers, 'a handler')
    this.opensAtMs = this.startedAtMs + ms
    this.#earlyHeaders = headers
  }

  openEarly(): void {
    if (this.isDone || this.isFailing || this.sink.isStreaming || this.#hooked !== null) return
    this.startStream(200, [...SSE_HEADERS, ...this.#earlyHeaders], true)
    this.isOpenedEarly = true
    // At once: a later turn could be in the middle of an event of the worker.
    this.writeStream(WAITING)
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.isOpenedEarly) return
    this.#hasEventStream = isEventStream
    if (this.#bypassesHooks) this.sink.start(status, headers, isEventStream)
    else if (!this.isDone) this.#throughHooks().startStream(status, headers, isEventStream)
  }

  writeStream(chunk: Buffer | string): boolean {
    return this.#bypassesHooks || this.isDone
      ? this.sink.write(chunk)
      : this.#throughHooks().writeStream(chunk)
  }

  endStream(last: Buffer | string = EMPTY, endsInError = false): void {
    if (this.#warnings !== null && this.#hasEventStream && !endsInError) {
      this.writeStream(`: ${WARNING_HEADER} ${this.takeWarnings().join(', ')}\n\n`)
    }
    if (endsInError) this.sink.isCutAtEnd = this.route.errors.cutsFailedStreams === true
    if (this.#bypassesHooks) this.sink.end(last)
    else if (!this.isDone) this.#throughHooks().endStream(last)
  }

  destroy(): void {
    this.sink.destroy()
  }

  #throughHooks(): HookedResponse {
    this.#hooked ??= new HookedResponse(this)
    return this.#hooked
  }

  bypassResponseHooks(): void {
    this.#hooked?.giveUp()
    this.#bypassesHooks = true
  }

  setListener(listener: SinkListener | null): void {
    this.#listener = listener
  }

  resumeWriter(): void {
    try {
      this.#listener?.onClientDrain()
    } catch (error) {
      this.fail(error)
    }
  }

  override onResponseDrain(): void {
    if (this.#hooked === null || this.#bypassesHooks) this.resumeWriter()
    else this.#hooked.clientDrained()
  }

  override onResponseDone(): void {
    const { isAborted } = this.sink
    // A writer that ended its own response is no longer set: any other one must stop.
    this.#cancelWriter()
    this.#hooked?.giveUp()
    const abortListeners = this.#abortListeners
    this.#abortListeners = null
    if (isAborted) this.#cancelWork()
    this.#cancelListeners = null
    finishRequest(this)
    if (isAborted && abortListeners !== null) for (const abort of abortListeners) this.#call(abort)
  }

  fail(error: unknown): void {
    if (this.isDone || this.isFailing) return
    // Hooks may take some time on the error: work on the response stops now.
    this.#cancelWork()
    // Data that the hooks hold back is sent before the error that ends the stream.
    if (this.firstByteAtMs !== 0 && this.#hooked?.failWhenReady(error) === true) return
    // The hooks have started on a response that is not sent.
    if (this.#hooked !== null) this.bypassResponseHooks()
    failRequest(this, error)
  }

  failHooked(error: unknown): void {
    this.#cancelWork()
    failHookedResponse(this, error)
  }

  onAbort(listener: () => void): void {
    if (this.isAborted) listener()
    else if (!this.isDone) this.#abortListeners = withListener(this.#abortListeners, listener)
  }

  onCancel(listener: () => void): void {
    if (this.isAborted || this.isFailing) listener()
    else this.#cancelListeners = withListener(this.#cancelListeners, listener)
  }

  #cancelWork(): void {
    this.#cancelWriter()
    const listeners = this.#cancelListeners
    this.#cancelListeners = null
    if (listeners !== null) for (const cancel of listeners) this.#call(cancel)
  }

  #cancelWriter(): void {
    const listener = this.#listener
    this.#listener = null
    if (listener !== null) this.#call(() => listener.onCancel())
  }

  /** An exception of a listener has no caller that could catch it, and must not end the thread. */
  #call(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.server.log.error({ err: error, request_id: this.requestId }, 'listener of a request failed')
    }
  }
}

/** @param listeners null without any, which costs a request no list */
function withListener(listeners: (() => void)[] | null, added: () => void): (() => void)[] {
  if (listeners === null) return [added]
  listeners.push(added)
  return listeners
}
