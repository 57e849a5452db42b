/**
 * One request from arrival to the end of its response, as handlers and hooks see it. Its response is written to a
 * `ResponseSink`, directly or through the hooks of its route. `fail.ts` renders errors. @hot
 */
import { ANONYMOUS_TENANT, type Credentials, type Identity, tenantOf } from '../contracts/auth.ts'
import type { ErrorEncoder } from '../contracts/error-format.ts'
import type { RouteHooks, WorkerErrorText } from '../contracts/hook.ts'
import type { SinkListener } from '../contracts/relay-context.ts'
import {
  type ExtraHeaders,
  type StreamOptions,
  type StreamWriter,
  type TokenUsage,
  WARNING_HEADER,
} from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { headerOf, isFieldValue } from '../wire/headers.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { failHookedResponse, failRequest } from './fail.ts'
import { HookedResponse } from './hooked-response.ts'
import { RequestBody } from './request-body.ts'
import { assertHeader, type CopiedHeaders, changeHeader } from './request-headers.ts'
import { assertHeaders } from './response-check.ts'
import { ResponseFlow } from './response-flow.ts'
import type { ResponseOwner, ResponseSink } from './response-sink.ts'
import { finishRequest, type ServedRequest, type ServerParts } from './server-parts.ts'
import { BatchedStreamWriter } from './stream-writer.ts'

const EMPTY = Buffer.alloc(0)
const EVENT_STREAM = 'text/event-stream'
const SSE_HEADERS = ['content-type', `${EVENT_STREAM}; charset=utf-8`, 'cache-control', 'no-cache']
/** A comment, which makes the head leave. */
const WAITING = ': waiting for the worker\n\n'

export class HttpContext extends RequestBody implements ServedRequest, ResponseOwner {
  readonly server: ServerParts
  readonly compiled: CompiledRoute
  /** Those at arrival: a hook that is switched on later does not run for this request. */
  readonly hooks: RouteHooks
  readonly sink: ResponseSink
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: CopiedHeaders
  readonly requestId: string
  readonly startedAtMs: number
  identity: Identity | null = null
  credentials: Credentials | null = null
  isModelAllowed = false
  isContinuation = false
  errorCode: string | null = null
  modules: string[] | null = null
  isFailing = false
  isAdmitted = false
  encodeError: ErrorEncoder | null = null
  openIndex = -1
  /** Set by the relay, for the access line and metrics. */
  workerUrl: string | null = null
  workerError: WorkerErrorText | null = null
  model: string | null = null
  virtualModel: string | null = null
  usage: TokenUsage | null = null
  usageCorrection: Promise<void> | null = null
  attempts = 0
  generationCount = 0
  /** Plugin values by slot index; created with the first one. */
  slots: unknown[] | null = null

  opensAtMs = 0
  isOpenedEarly = false
  #earlyHeaders: ExtraHeaders = []
  #warnings: string[] | null = null
  #hasEventStream = false

  readonly #pathValues: readonly string[]
  #abortListeners: (() => void)[] | null = null
  #cancelListeners: (() => void)[] | null = null
  #clientAddress: string | null = null
  #listener: SinkListener | null = null
  #flow: ResponseFlow | null = null
  /** Hooks of the response; null before it begins and for routes without such hooks. */
  #hooked: HookedResponse | null = null
  #bypassesHooks: boolean

  constructor(
    server: ServerParts,
    compiled: CompiledRoute,
    sink: ResponseSink,
    method: string,
    path: string,
    query: string,
    pathValues: readonly string[],
    headers: CopiedHeaders,
    requestId: string,
  ) {
    super()
    const { hooks } = compiled
    this.server = server
    this.compiled = compiled
    this.hooks = hooks
    this.sink = sink
    this.method = method
    this.path = path
    this.query = query
    this.#pathValues = pathValues
    this.headers = headers
    this.requestId = requestId
    this.startedAtMs = performance.now()
    this.#bypassesHooks = hooks.onResponse === null && hooks.onEvents === null
    sink.attach(this)
  }

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

  get route() {
    return this.compiled.definition
  }

  get forwardedHeaders(): HeaderList {
    return this.headers.forwarded
  }

  param(name: string): string {
    return decode(this.rawParam(name))
  }

  /** Percent-encoded as received. */
  rawParam(name: string): string {
    const index = this.compiled.paramNames.indexOf(name)
    return index < 0 ? '' : this.#pathValues[index]
  }

  queryParam(name: string): string | null {
    return this.query === '' ? null : new URLSearchParams(this.query).get(name)
  }

  noteModule(name: string): void {
    this.modules ??= []
    if (!this.modules.includes(name)) this.modules.push(name)
  }

  showTarget(virtualModel: string, model: string): void {
    this.virtualModel = virtualModel
    // A worker may list any text as the id of a model.
    this.sink.servedModel = isFieldValue(model) ? model : null
  }

  get clientAddress(): string {
    this.#clientAddress ??= this.server.addressOf(this.sink.remoteAddress(), this.headers.kept)
    return this.#clientAddress
  }

  /** Of an in-memory request: the address of the request that it belongs to. */
  setClientAddress(address: string): void {
    this.#clientAddress = address
  }

  override get bodyOwner(): string {
    const tenant = tenantOf(this)
    return tenant === ANONYMOUS_TENANT ? this.clientAddress : tenant
  }

  header(name: string): string | undefined {
    return headerOf(this.headers.kept, name)
  }

  get requestHeaders(): HeaderList {
    return this.headers.kept
  }

  changeHeader(change: 'set' | 'add' | 'remove', name: string, value: string): void {
    const lower = name.toLowerCase()
    if (change !== 'remove') assertHeader(lower, value)
    changeHeader(this.headers, change, lower, value)
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

  onResponseDrain(): void {
    if (this.#hooked === null || this.#bypassesHooks) this.resumeWriter()
    else this.#hooked.clientDrained()
  }

  onResponseDone(): void {
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

function decode(value: string): string {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
