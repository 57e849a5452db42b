/** One request as it arrived, and what is noted about it on its way, for the access line, metrics and plugins. @hot */
import { ANONYMOUS_TENANT, type Credentials, type Identity, tenantOf } from '../contracts/auth.ts'
import type { RouteHooks, WorkerErrorText } from '../contracts/hook.ts'
import type { TokenUsage } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import { headerOf, isFieldValue } from '../wire/headers.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { RequestBody } from './request-body.ts'
import { assertHeader, type CopiedHeaders, changeHeader } from './request-headers.ts'
import type { ResponseOwner, ResponseSink } from './response-sink.ts'
import type { ServerParts } from './server-parts.ts'

/** Base of the request context, as `RequestBody` is of it. */
export abstract class IncomingRequest extends RequestBody implements ResponseOwner {
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
  modules: string[] | null = null
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

  readonly #pathValues: readonly string[]
  #clientAddress: string | null = null

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
    this.server = server
    this.compiled = compiled
    this.hooks = compiled.hooks
    this.sink = sink
    this.method = method
    this.path = path
    this.query = query
    this.#pathValues = pathValues
    this.headers = headers
    this.requestId = requestId
    this.startedAtMs = performance.now()
    sink.attach(this)
  }

  abstract onResponseDrain(): void
  abstract onResponseDone(): void

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
}

function decode(value: string): string {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
