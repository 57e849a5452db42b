/** POST /v1/responses: the response as one object or as an event stream. */
import { type JsonObject, type RequestContext, type StreamWriter, tenantOf } from '#kernel'
import { newId, storageUnavailable } from '#shared'
import { DONE } from '../output/event-encoder.ts'
import type { Parts } from '../parts.ts'
import { type CreateRequest, readCreateRequest } from '../read/read-request.ts'
import { compacted } from './auto-compact.ts'
import type { RememberedTurn } from './load-past.ts'
import { makePlan, type Plan, warningHeaders, warningsOf } from './plan.ts'
import { ResponseRun, type RunEnd } from './response-run.ts'

export interface ServeOptions {
  /** On a WebSocket each event is a message, and no `[DONE]` follows the last one. */
  readonly isSocket?: boolean
  readonly remembered?: RememberedTurn | null
  readonly onEnd?: (end: RunEnd, id: string) => void
}

/** @throws errors of the request (400, 404), storage_unavailable (503), storage_quota_exceeded (507) */
export function serveCreate(
  parts: Parts,
  ctx: RequestContext,
  request: CreateRequest,
  options: ServeOptions = {},
): void | Promise<void> {
  let stopEarly: (() => StreamWriter | null) | null = null
  const begin = (plan: Plan) => {
    const writer = stopEarly?.() ?? null
    // The client may have disconnected while the history was read.
    if (ctx.isDone || ctx.isAborted) {
      void plan.lasting.lock?.release()
      return
    }
    if (plan.request.stream) streamResponse(parts, ctx, plan, options, writer)
    else answerResponse(parts, ctx, plan)
  }
  const tenant = tenantOf(ctx)
  const remembered = options.remembered ?? null
  // Before the generation, whose result could not be stored.
  requireStore(parts, request, remembered)
  const checked = request.store ? parts.history?.checkQuota(tenant, ctx.bodyBytes.length) : undefined
  const toPlan = () => makePlan(parts, tenant, request, { remembered })
  const plan = checked instanceof Promise ? checked.then(toPlan) : toPlan()
  const ready =
    plan instanceof Promise
      ? plan.then((loaded) => compacted(parts, ctx, loaded))
      : compacted(parts, ctx, plan)
  if (!(ready instanceof Promise)) return begin(ready)
  // WebSockets need no early stream.
  if (request.stream && options.isSocket !== true) stopEarly = openEarly(ctx, parts.config.streamOpensAfterMs)
  return ready.then(begin, (error: unknown) => {
    stopEarly?.()
    throw error
  })
}

/**
 * Rejects a request before anything is generated.
 *
 * @throws storage_unavailable (503) if the request stores a response or continues a stored one, and the store is down
 */
export function requireStore(
  { history }: Parts,
  { store, background, conversationId, previousResponseId }: CreateRequest,
  remembered: RememberedTurn | null,
): void {
  const outage = history?.outage() ?? null
  if (outage === null) return
  const continues = previousResponseId !== null && previousResponseId !== remembered?.responseId
  if (store || background || conversationId !== null || continues)
    throw storageUnavailable(
      `${outage}; only requests with store set to false and their whole input are served`,
    )
}

/** @param members replace those of the client. @throws 400 naming the field */
export function readCreate(parts: Parts, body: unknown, members: JsonObject = {}): CreateRequest {
  const request = withoutInternal(parts, readCreateRequest(body, members))
  if (parts.history !== undefined || !request.store) return request
  // Without a store nothing is kept, also if the client requests it.
  return { ...request, store: false, echo: { ...request.echo, store: false } }
}

/** Internal tool servers are not echoed. */
function withoutInternal({ toolLoop }: Parts, request: CreateRequest): CreateRequest {
  const hidden = request.tools.gateway.some((tool) => tool.kind === 'mcp' && toolLoop?.isInternal(tool.label))
  if (!hidden) return request
  const isShown = ({ type, server_label: label }: JsonObject) =>
    type !== 'mcp' || toolLoop?.isInternal(String(label)) !== true
  return { ...request, echo: { ...request.echo, tools: request.tools.echo.filter(isShown) } }
}

function answerResponse(parts: Parts, ctx: RequestContext, plan: Plan): void {
  const headers = warningHeaders(plan)
  const run = new ResponseRun(parts, ctx, plan, {
    id: newId('resp'),
    createdAtSec: nowSec(),
    sink: null,
    onEnd: ({ reply, error, isAnswered }) => {
      if (isAnswered) return
      if (error !== null) ctx.fail(error)
      else if (reply !== null && !ctx.isDone) ctx.send(200, 'application/json', reply, headers)
    },
  })
  run.start()
}

function streamResponse(
  parts: Parts,
  ctx: RequestContext,
  plan: Plan,
  { isSocket = false, onEnd }: ServeOptions,
  opened: StreamWriter | null,
): void {
  let writer = opened
  const headers = warningHeaders(plan)
  const id = newId('resp')
  const open = () => {
    clearTimeout(opening)
    return ctx.sse(200, headers)
  }
  const run = new ResponseRun(parts, ctx, plan, {
    id,
    createdAtSec: nowSec(),
    isSocket,
    sink: (frame) => {
      writer ??= open()
      writer.write(frame)
    },
    onEnd: (end) => {
      clearTimeout(opening)
      onEnd?.(end, id)
      if (ctx.isDone || end.isAnswered) return
      if (writer !== null) writer.end(isSocket ? '' : DONE)
      else if (end.error !== null) ctx.fail(end.error)
    },
  })
  parts.runs.set(ctx, run)
  if (!isSocket) ctx.openAfter(parts.config.streamOpensAfterMs, headers)
  // A slow worker must not leave the client without an open stream.
  const opening = setTimeout(() => run.begin(), parts.config.streamOpensAfterMs)
  // From now on a failure has no HTTP status of its own, and warnings no header.
  if (opened !== null) {
    for (const warning of warningsOf(plan)) ctx.warn(warning)
    run.begin()
  }
  run.start()
}

export function nowSec(): number {
  return Math.floor(Date.now() / 1000)
}

/** A comment that keeps the connection alive. */
const KEEP_ALIVE = ': preparing the response\n\n'

/**
 * Opens the stream of a request whose history takes long to load or to compact.
 *
 * @param afterMs delay; a failure before it has its own HTTP status
 * @returns ends the delay, and returns the stream if it was opened
 */
function openEarly(ctx: RequestContext, afterMs: number): () => StreamWriter | null {
  let writer: StreamWriter | null = null
  const timer = setTimeout(() => {
    const { isDone, isAborted, isFailing } = ctx
    if (isDone || isAborted || isFailing) return
    writer = ctx.sse()
    writer.write(KEEP_ALIVE)
  }, afterMs)
  return () => {
    clearTimeout(timer)
    return writer
  }
}
