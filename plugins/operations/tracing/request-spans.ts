/** Spans of requests and upstream attempts; sends the trace context to the worker. */
import {
  type AttemptReport,
  type Host,
  type OutgoingAttempt,
  type RequestContext,
  type RequestSlot,
  type RequestTracingService,
  type SpanAttributes,
  tenantOf,
  type WorkerEntry,
  type WorkSpan,
} from '#kernel'
import type { OpenSpan, SpanPipeline } from './span-pipeline.ts'

/** Open spans of one request. */
interface RequestTrace {
  readonly server: OpenSpan
  /** By worker id, because both workers of a pair run at once. */
  readonly upstream: Map<string, OpenSpan>
  /** Spans of other plugins inside the request. */
  readonly work: Set<OpenSpan>
}

/** Operation names by endpoint. @source OpenTelemetry semantic conventions, gen_ai.operation.name */
const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['chat', 'chat'],
  ['messages', 'chat'],
  ['responses', 'chat'],
  ['completions', 'text_completion'],
  ['generate', 'generate_content'],
  ['embeddings', 'embeddings'],
])

export class RequestSpans implements RequestTracingService {
  readonly #slot: RequestSlot<RequestTrace>
  readonly #pipeline: () => SpanPipeline | null
  readonly #addresses = new ServerAddresses()

  /** @param pipeline null before the plugin has started and after it has stopped */
  constructor(host: Host, pipeline: () => SpanPipeline | null) {
    this.#slot = host.slot()
    this.#pipeline = pipeline
  }

  /** Names and attributes follow the HTTP conventions of OpenTelemetry; bodies and keys are never recorded. */
  open(ctx: RequestContext): void {
    const pipeline = this.#pipeline()
    if (pipeline === null || this.#slot.get(ctx) !== undefined) return
    const server = pipeline.openServerSpan(
      `${ctx.method} ${ctx.route.path}`,
      { traceparent: ctx.header('traceparent'), tracestate: ctx.header('tracestate') },
      {
        'http.request.method': ctx.method,
        'http.route': ctx.route.path,
        'url.path': ctx.path,
        'client.address': ctx.clientAddress,
        'weir.request_id': ctx.requestId,
        'weir.tenant': tenantOf(ctx),
      },
      ctx.startedAtMs,
    )
    this.#slot.set(ctx, { server, upstream: new Map(), work: new Set() })
  }

  beginAttempt(ctx: RequestContext, attempt: OutgoingAttempt): void {
    const trace = this.#slot.get(ctx)
    if (trace === undefined) return
    // The next attempt on a worker closes a span whose end was not reported.
    trace.upstream.get(attempt.worker.id)?.end('superseded', performance.now())
    const span = trace.server.child(
      'client',
      `upstream ${ctx.route.endpoint ?? 'request'}`,
      {
        ...this.#addresses.of(attempt.worker),
        'weir.worker_url': attempt.worker.url,
        'weir.worker_id': attempt.worker.id,
        ...(ctx.model !== null && { 'gen_ai.request.model': ctx.model }),
      },
      performance.now(),
    )
    trace.upstream.set(attempt.worker.id, span)
    const { traceparent, tracestate } = span.headers()
    replaceHeader(attempt.headers, 'traceparent', traceparent)
    replaceHeader(attempt.headers, 'tracestate', tracestate)
  }

  endAttempt(ctx: RequestContext, report: AttemptReport): void {
    const trace = this.#slot.get(ctx)
    const span = trace?.upstream.get(report.worker.id)
    if (trace === undefined || span === undefined) return
    trace.upstream.delete(report.worker.id)
    span.set({
      'http.response.status_code': report.status,
      'weir.attempt': report.number,
      'weir.policy': report.policy,
      'weir.outcome': report.outcome,
      ...(report.answeredAtMs > 0 && {
        'weir.first_byte_ms': Math.round(report.answeredAtMs - report.startedAtMs),
      }),
    })
    const isFailed = report.outcome === 'failure' || report.outcome === 'retried'
    span.end(isFailed ? (report.failure ?? `status ${report.status}`) : null, report.endedAtMs)
  }

  begin(ctx: RequestContext, name: string, attributes: SpanAttributes): WorkSpan | null {
    const trace = this.#slot.get(ctx)
    if (trace === undefined) return null
    const span = trace.server.child('internal', name, attributes, performance.now())
    trace.work.add(span)
    return {
      set: (more) => span.set(more),
      end: (error) => {
        if (trace.work.delete(span)) span.end(error, performance.now())
      },
    }
  }

  close(ctx: RequestContext): void {
    // Requests that were rejected before hooks ran are traced too.
    this.open(ctx)
    const trace = this.#slot.get(ctx)
    if (trace === undefined) return
    const nowMs = performance.now()
    const left = ctx.isAborted ? 'client disconnected' : null
    for (const span of trace.upstream.values()) span.end(left, nowMs)
    for (const span of trace.work) span.end(left, nowMs)
    trace.work.clear()
    trace.server.set({
      'http.response.status_code': ctx.status,
      'http.response.body.size': ctx.bytesOut,
      ...(ctx.firstByteAtMs > 0 && {
        'weir.first_byte_ms': Math.round(ctx.firstByteAtMs - ctx.startedAtMs),
      }),
      ...(ctx.errorCode !== null && { 'error.type': ctx.errorCode }),
      ...generationOf(ctx),
    })
    const isFailed = ctx.status >= 500 || (ctx.errorCode !== null && ctx.status < 400)
    trace.server.end(isFailed ? (ctx.errorCode ?? `status ${ctx.status}`) : null, nowMs)
  }
}

/** Only requests that reached a worker are generations. */
function generationOf({ model, usage, route }: RequestContext): SpanAttributes {
  const operation = OPERATIONS.get(route.endpoint ?? '')
  if (model === null || operation === undefined) return {}
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': model,
    ...(usage !== null && {
      'gen_ai.usage.input_tokens': usage.input,
      'gen_ai.usage.output_tokens': usage.output,
      'gen_ai.usage.cache_read.input_tokens': usage.cached,
      'gen_ai.usage.reasoning.output_tokens': usage.reasoning,
    }),
  }
}

function replaceHeader(headers: string[], name: string, value: string | undefined): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) if (headers[i] === name) headers.splice(i, 2)
  if (value !== undefined) headers.push(name, value)
}

const DEFAULT_PORTS: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['https:', 443],
  ['grpc:', 80],
  ['grpcs:', 443],
])

/** Caches the attributes of each worker. */
export class ServerAddresses {
  readonly #known = new WeakMap<WorkerEntry, SpanAttributes>()

  /** `server.address` and `server.port`. @source OpenTelemetry, attributes of servers */
  of(worker: WorkerEntry): SpanAttributes {
    const known = this.#known.get(worker) ?? toAttributes(worker)
    this.#known.set(worker, known)
    return known
  }
}

/** A data-parallel rank has the address of its engine. */
function toAttributes({ url, dataParallel }: Pick<WorkerEntry, 'url' | 'dataParallel'>): SpanAttributes {
  const parsed = URL.parse(dataParallel?.baseUrl ?? url)
  if (parsed === null || parsed.hostname === '') return { 'server.address': url }
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = parsed.port === '' ? DEFAULT_PORTS.get(parsed.protocol) : Number(parsed.port)
  return { 'server.address': host, ...(port !== undefined && { 'server.port': port }) }
}
