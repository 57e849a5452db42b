/**
 * One request, from its arrival to the end of its reply: what handlers and hooks see. Its reply is in
 * `hooked-writer.ts`, what becomes of a failure in `fail.ts`. @hot
 */
import type { Identity } from '../contracts/auth.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { RequestContext, RoutingPeek, TokenCounts } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { Validator } from '../schema/validate.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { failHookedReply, failRequest } from './fail.ts'
import { HookedWriter } from './hooked-writer.ts'
import { parseJson, type ScannedBody } from './parse-json.ts'
import { peekRouting, toPeek } from './peek.ts'
import type { ReplyPort } from './reply-writer.ts'
import { finishRequest } from './request-end.ts'
import { assertHeader, type CopiedHeaders, changeHeader, headerValue } from './request-headers.ts'
import type { ServerParts } from './server-parts.ts'

const EMPTY = Buffer.alloc(0)

export class HttpContext extends HookedWriter implements RelayContext {
  readonly compiled: CompiledRoute
  readonly path: string
  readonly query: string
  readonly startedAtMs: number
  identity: Identity | null = null
  errorCode: string | null = null
  modules: string[] | null = null
  /** The body is whole, and has been looked through where it is long. */
  hasBody = false
  /** The body is still coming. */
  isReceiving = false
  /** Body bytes so far. */
  bytesIn = 0
  /** An error reply is being made. */
  isFailing = false
  /** The access check has passed. */
  isAdmitted = false
  openPlace = -1
  /** Set by the relay, for the access line and metrics. */
  workerUrl: string | null = null
  model: string | null = null
  tokens: TokenCounts | null = null
  attempts = 0
  generationCount = 0
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
  /** Of a long body, which has been looked through before the request runs. */
  #scanned: ScannedBody | null = null
  #clientAddress: string | null = null

  constructor(
    server: ServerParts,
    compiled: CompiledRoute,
    res: ReplyPort,
    method: string,
    path: string,
    query: string,
    pathValues: readonly string[],
    headers: CopiedHeaders,
    requestId: string,
  ) {
    super(server, compiled.hooks, res, method, headers, requestId)
    this.compiled = compiled
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

  get clientAddress(): string {
    this.#clientAddress ??= this.server.addressOf(this.remoteAddress(), this.headers.kept)
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

  /** What is known of the body once it has been looked through. */
  takeScan(scanned: ScannedBody): void {
    this.#scanned = scanned
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
    this.#scanned = null
  }

  body<T>(validator: Validator<T>): T {
    return validator.parse(this.bodyJson())
  }

  bodyJson(): unknown {
    if (this.#parsed === undefined)
      this.#parsed = parseJson(this.#body, this.server.maxJsonDepth, this.#scanned)
    return this.#parsed
  }

  peek(): RoutingPeek {
    this.#peek ??= this.#findRouting()
    return this.#peek
  }

  #findRouting(): RoutingPeek {
    const scanned = this.#scanned
    if (scanned === null) return peekRouting(this.#body, this.server.maxJsonDepth)
    return toPeek(this.#body, scanned.scan, scanned.state)
  }

  protected override get request(): RequestContext {
    return this
  }

  override fail(error: unknown): void {
    if (this.isDone || this.isFailing) return
    // It may be some time until hooks have had their say: whoever works on the reply stops now.
    this.#cancelWork()
    // What the hooks still hold of the stream comes before the error event.
    if (this.firstByteAtMs !== 0 && this.failsLater(error)) return
    this.dropHookedReply()
    failRequest(this, error)
  }

  override failHooked(error: unknown): void {
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
    super.finished()
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
