/** One request, from its arrival to the end of its reply: what handlers and hooks see. Writing is in `reply-writer.ts`. @hot */
import type { HttpResponse } from 'uWebSockets.js'
import type { Identity } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { ReplyHeaders, RoutingPeek, SseWriter } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { Validator } from '../schema/validate.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HookedReply, type PlainReply } from './hooked-reply.ts'
import { parseJson } from './parse-routing.ts'
import { peekRouting } from './peek.ts'
import { ReplyWriter } from './reply-writer.ts'
import { assertHeader, type CopiedHeaders, changeHeader, headerValue } from './request-headers.ts'
import { failHookedReply, failRequest, finishRequest } from './run.ts'
import type { ServerParts } from './server-parts.ts'
import { ContextSseWriter } from './sse.ts'

const EMPTY = Buffer.alloc(0)
const EVENT_STREAM = 'text/event-stream'

export class HttpContext extends ReplyWriter implements RelayContext, PlainReply {
  readonly compiled: CompiledRoute
  /** As they were at arrival: hooks that are switched meanwhile do not meet half a request. */
  readonly hooks: RouteHooks
  readonly path: string
  readonly query: string
  readonly startedAtMs: number
  identity: Identity | null = null
  errorCode: string | null = null
  /** The body is whole. */
  hasBody = false
  /** An error reply is being made. */
  isFailing = false
  /** The access check has passed. */
  isAdmitted = false
  /** Set by the relay, for the access line and metrics. */
  workerUrl: string | null = null
  /** Plugin values by slot index; made when the first is set. */
  slots: unknown[] | null = null

  readonly #pathValues: readonly string[]
  #body: Buffer = EMPTY
  /** The pooled block under the body, given back at the end; null when there is none or somebody may keep it. */
  #bodyBlock: Buffer | null = null
  #abortListeners: (() => void)[] | null = null
  #cancelListeners: (() => void)[] | null = null
  #peek: RoutingPeek | null = null
  #parsed: unknown = undefined
  #clientAddress: string | null = null
  /** The reply's way through hooks; null until it begins, and where the route has none for it. */
  #hooked: HookedReply | null = null
  #hasPlainReply: boolean

  constructor(
    server: ServerParts,
    compiled: CompiledRoute,
    res: HttpResponse,
    method: string,
    path: string,
    query: string,
    pathValues: readonly string[],
    headers: CopiedHeaders,
    requestId: string,
  ) {
    super(server, res, method, headers, requestId)
    this.compiled = compiled
    const { hooks } = compiled
    this.hooks = hooks
    this.#hasPlainReply = hooks.onResponse === null && hooks.onEvents === null && hooks.onChunk === null
    this.path = path
    this.query = query
    this.#pathValues = pathValues
    this.startedAtMs = performance.now()
  }

  get route() {
    return this.compiled.definition
  }

  get forwardedHeaders(): HeaderList {
    return this.headers.forwarded
  }

  param(name: string): string {
    const index = this.compiled.paramNames.indexOf(name)
    return index < 0 ? '' : decode(this.#pathValues[index])
  }

  queryParam(name: string): string | null {
    return this.query === '' ? null : new URLSearchParams(this.query).get(name)
  }

  get clientAddress(): string {
    this.#clientAddress ??= this.remoteAddress()
    return this.#clientAddress
  }

  header(name: string): string | undefined {
    return headerValue(this.headers.kept, name)
  }

  get requestHeaders(): HeaderList {
    return this.headers.kept
  }

  changeHeader(change: 'set' | 'add' | 'remove', name: string, value: string): void {
    const lower = name.toLowerCase()
    if (change !== 'remove') assertHeader(lower, value)
    changeHeader(this.headers, change, lower, value)
  }

  /** Whoever asks may keep it: its memory is not used again. */
  get bodyBytes(): Buffer {
    this.#bodyBlock = null
    return this.#body
  }

  get rawBody(): Buffer {
    return this.#body
  }

  /** @param block the pooled block under it, or null */
  takeBody(bytes: Buffer, block: Buffer | null): void {
    this.#body = bytes
    this.#bodyBlock = block
  }

  forgetBody(): void {
    // onResponse may still read it; the hooks after it see none.
    if (this.hooks.onResponse === null) this.#body = EMPTY
    this.#bodyBlock = null
  }

  /** At the very end, when nobody writes it to a worker any more. */
  recycleBody(): void {
    const block = this.#bodyBlock
    this.#body = EMPTY
    this.#bodyBlock = null
    if (block !== null) this.server.bodies.give(block)
  }

  setBody(bytes: Buffer): void {
    this.#body = bytes
    this.#bodyBlock = null
    this.#peek = null
    this.#parsed = undefined
  }

  body<T>(validator: Validator<T>): T {
    return validator.parse(this.bodyJson())
  }

  bodyJson(): unknown {
    if (this.#parsed === undefined) this.#parsed = parseJson(this.#body)
    return this.#parsed
  }

  peek(): RoutingPeek {
    this.#peek ??= peekRouting(this.#body)
    return this.#peek
  }

  json(status: number, value: unknown, headers?: ReplyHeaders): void {
    this.send(status, 'application/json', JSON.stringify(value), headers)
  }

  text(status: number, body: string, headers?: ReplyHeaders): void {
    this.send(status, 'text/plain; charset=utf-8', body, headers)
  }

  send(status: number, contentType: string | null, body: string | Buffer, headers?: ReplyHeaders): void {
    if (this.#hasPlainReply) this.writeWhole(status, contentType, headers ?? null, body)
    else if (!this.isDone) this.#throughHooks().sendWhole(status, contentType, headers ?? null, body)
  }

  sendWhole(status: number, headers: HeaderList, body: Buffer): void {
    if (this.#hasPlainReply) this.writeWhole(status, null, headers, body)
    else if (!this.isDone) this.#throughHooks().sendWhole(status, null, headers, body)
  }

  sse(status = 200, headers?: ReplyHeaders): SseWriter {
    const all = ['content-type', `${EVENT_STREAM}; charset=utf-8`, 'cache-control', 'no-cache']
    if (headers !== undefined) all.push(...headers)
    this.startStream(status, all, true)
    return new ContextSseWriter(this)
  }

  startStream(status: number, headers: HeaderList, isEventStream: boolean): void {
    if (this.#hasPlainReply) this.openStream(status, headers, isEventStream)
    else if (!this.isDone) this.#throughHooks().startStream(status, headers, isEventStream)
  }

  writeStream(chunk: Buffer | string): boolean {
    return this.#hasPlainReply || this.isDone
      ? this.writeChunk(chunk)
      : this.#throughHooks().writeStream(chunk)
  }

  endStream(last: Buffer | string = EMPTY): void {
    if (this.#hasPlainReply) this.closeStream(last)
    else if (!this.isDone) this.#throughHooks().endStream(last)
  }

  #throughHooks(): HookedReply {
    this.#hooked ??= new HookedReply(this, this.hooks, this)
    return this.#hooked
  }

  /** From now on no hook sees the reply: it was a hook that made it, or the one that failed. */
  bypassReplyHooks(): void {
    this.#hooked?.giveUp()
    this.#hasPlainReply = true
  }

  resumeWriter(): void {
    this.listener?.onClientDrain()
  }

  protected override clientDrained(): void {
    if (this.#hooked === null || this.#hasPlainReply) super.clientDrained()
    else this.#hooked.clientDrained()
  }

  fail(error: unknown): void {
    if (this.isDone || this.isFailing) return
    // It may be some time until hooks have had their say: whoever works on the reply stops now.
    this.#cancelWork()
    // What the hooks still hold of the stream comes before the error event.
    if (this.firstByteAtMs !== 0 && this.#hooked?.failWhenReady(error)) return
    // The hooks have begun on another reply, which will not be sent.
    if (this.#hooked !== null) this.bypassReplyHooks()
    failRequest(this, error)
  }

  failHooked(error: unknown): void {
    this.#cancelWork()
    failHookedReply(this, error)
  }

  onAbort(listener: () => void): void {
    if (this.isAborted) listener()
    else if (!this.isDone) this.#addAbortListener(listener)
  }

  onCancel(listener: () => void): void {
    if (this.isAborted || this.isFailing) listener()
    else if (this.#cancelListeners === null) this.#cancelListeners = [listener]
    else this.#cancelListeners.push(listener)
  }

  #cancelWork(): void {
    const { listener } = this
    this.setListener(null)
    listener?.onCancel()
    const listeners = this.#cancelListeners
    this.#cancelListeners = null
    if (listeners !== null) for (const cancel of listeners) cancel()
  }

  #addAbortListener(listener: () => void): void {
    if (this.#abortListeners === null) this.#abortListeners = [listener]
    else this.#abortListeners.push(listener)
  }

  protected override finished(): void {
    this.#hooked?.giveUp()
    const listeners = this.#abortListeners
    this.#abortListeners = null
    if (this.isAborted) this.#cancelWork()
    this.#cancelListeners = null
    finishRequest(this)
    if (this.isAborted && listeners !== null) for (const abort of listeners) this.#callAbort(abort)
  }

  /** What a listener throws has no caller who could catch it, and must not end the thread. */
  #callAbort(abort: () => void): void {
    try {
      abort()
    } catch (error) {
      this.server.log.error({ err: error, request_id: this.requestId }, 'an abort listener threw')
    }
  }
}

function decode(value: string): string {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
