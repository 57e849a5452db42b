/**
 * Requests without a connection: WebSocket messages and detached work. They run like client requests (hooks, limits,
 * counters, log line, traces), and their response is passed to a receiver in this process.
 */
import type { Identity } from '../contracts/auth.ts'
import type { Detached, DetachedOutcome, DetachedWork } from '../contracts/detached.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import type { ResponseReceiver } from '../contracts/socket.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HttpContext } from './context.ts'
import { MemoryResponseSink } from './memory-response-sink.ts'
import { type CopiedHeaders, makeRequestId } from './request-headers.ts'
import type { ServerParts } from './server-parts.ts'

/** Bytes of the response of detached work that are kept. */
const MAX_KEPT_BYTES = 1_048_576
const NO_BODY = Buffer.alloc(0)

/** Data of a request that a client would have sent. */
export interface MemoryRequest {
  readonly path: string
  readonly query: string
  readonly pathValues: readonly string[]
  readonly headers: CopiedHeaders
  readonly requestId: string
  /** Already authorised. */
  readonly identity: Identity | null
  readonly clientAddress: string
  readonly body: Buffer
  /** Replaces the handler of the route. */
  readonly handler: RouteDefinition['handler']
}

/** Creates the context of a request and counts it as open; the caller runs it. */
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

/**
 * @param route its hooks run; its handler is replaced by the `run` of the work
 * @param metrics null if metrics are off
 */
export function openDetached(
  server: ServerParts,
  route: CompiledRoute,
  metrics: CompiledRoute['metrics'],
  work: DetachedWork,
): { readonly ctx: HttpContext; readonly detached: Detached } {
  const { promise, resolve } = Promise.withResolvers<DetachedOutcome>()
  const chunks: Buffer[] = []
  let byteCount = 0
  const receiver: ResponseReceiver = {
    onType() {},
    onData(chunk) {
      if (byteCount >= MAX_KEPT_BYTES) return true
      const bytes = Buffer.from(chunk as string).subarray(0, MAX_KEPT_BYTES - byteCount)
      byteCount += bytes.length
      chunks.push(bytes)
      return true
    },
    onEnd() {},
    onCut() {},
  }
  const onDone = () => resolve({ status: ctx.status, errorCode: ctx.errorCode, body: Buffer.concat(chunks) })
  const sink = new MemoryResponseSink(receiver, onDone, (err) =>
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
  ctx.isContinuation = work.isContinuation === true
  return { ctx, detached: { done: promise, cancel: () => sink.cancel() } }
}
