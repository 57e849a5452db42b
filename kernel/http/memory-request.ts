/**
 * Requests without a connection of their own, messages of WebSockets and detached work: they run like those of clients
 * (hooks, limits, counters, log line, traces), and their response goes to a receiver in this process.
 */
import type { Identity } from '../contracts/auth.ts'
import type { Detached, DetachedOutcome, DetachedWork } from '../contracts/detached.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { ResponseReceiver } from '../contracts/socket.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HttpContext } from './context.ts'
import { MemoryResponseSink } from './memory-response-sink.ts'
import type { CopiedHeaders } from './request-headers.ts'
import { makeRequestId } from './request-id.ts'
import type { ServerParts } from './server-parts.ts'

/** Of the response of detached work, this much is kept. */
const MAX_KEPT_BYTES = 1_048_576
const NO_BODY = Buffer.alloc(0)

/** What a request of a client would have brought along. */
export interface MemoryRequest {
  readonly path: string
  readonly query: string
  readonly pathValues: readonly string[]
  readonly headers: CopiedHeaders
  readonly requestId: string
  /** Checked already. */
  readonly identity: Identity | null
  readonly clientAddress: string
  readonly body: Buffer
  /** Runs in place of the route's. */
  readonly handler: RouteDefinition['handler']
}

/** Makes the context of a request and counts it as open; the caller runs it. */
export function openMemoryRequest(
  server: ServerParts,
  route: CompiledRoute,
  sink: MemoryResponseSink,
  request: MemoryRequest,
): HttpContext {
  const { path, query, pathValues, headers, requestId, handler } = request
  const definition = { ...route.definition, handler }
  const compiled = { ...route, definition }
  const { method } = definition
  const ctx = new HttpContext(server, compiled, sink, method, path, query, pathValues, headers, requestId)
  ctx.identity = request.identity
  ctx.isAdmitted = true
  ctx.hasBody = true
  ctx.takeBody(request.body, null)
  ctx.setClientAddress(request.clientAddress)
  server.requestBegan(ctx)
  return ctx
}

/** Keeps the beginning of a response; it is never slow. */
class KeptResponse implements ResponseReceiver {
  readonly #chunks: Buffer[] = []
  #byteCount = 0

  get body(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  onType(): void {}

  onData(chunk: string | Buffer): boolean {
    if (this.#byteCount >= MAX_KEPT_BYTES) return true
    const bytes = Buffer.from(chunk as string).subarray(0, MAX_KEPT_BYTES - this.#byteCount)
    this.#byteCount += bytes.length
    this.#chunks.push(bytes)
    return true
  }

  onEnd(): void {}

  onCut(): void {}
}

/**
 * @param route whose hooks run; its handler is the work's `run`
 * @param metrics where it is counted; null when metrics are off
 */
export function openDetached(
  server: ServerParts,
  route: CompiledRoute,
  metrics: CompiledRoute['metrics'],
  work: DetachedWork,
): { readonly ctx: HttpContext; readonly detached: Detached } {
  const { promise, resolve } = Promise.withResolvers<DetachedOutcome>()
  const kept = new KeptResponse()
  const onDone = () => resolve({ status: ctx.status, errorCode: ctx.errorCode, body: kept.body })
  const sink = new MemoryResponseSink(kept, onDone, (err) =>
    server.log.error({ err, path: route.definition.path }, 'receiver of detached work failed'),
  )
  const headers = [...(work.headers ?? [])]
  const ctx = openMemoryRequest(server, { ...route, metrics }, sink, {
    path: route.definition.path,
    query: '',
    pathValues: [],
    headers: { kept: headers, forwarded: [], contentLength: -1, requestId: '', problem: null },
    requestId: work.requestId ?? makeRequestId(route.requestIdPrefix),
    identity: work.identity,
    clientAddress: '',
    body: work.body ?? NO_BODY,
    handler: work.run,
  })
  return { ctx, detached: { done: promise, cancel: () => sink.cancel() } }
}
