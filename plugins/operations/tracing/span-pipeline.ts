/** Wraps the OpenTelemetry SDK: sampling, batching, export. Loaded lazily. */
import { type Attributes, type Context, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import type { CounterHandle, Host, Logger, Metrics } from '#kernel'
import { FailureLog } from '#shared'
import type { TracingConfig } from './config.ts'

/** Headers of a trace context. @source W3C Trace Context, section 3 */
export interface TraceHeaders {
  readonly traceparent?: string
  readonly tracestate?: string
}

export interface OpenSpan {
  set(attributes: Attributes): void
  /** @param error short reason, null on success @param atMs time of `performance.now()` */
  end(error: string | null, atMs: number): void
  /** Headers for the next hop. */
  headers(): TraceHeaders
  /** Starts a child span: of a request to a worker, or of work in this process. */
  child(kind: 'client' | 'internal', name: string, attributes: Attributes, atMs: number): OpenSpan
}

/** Maximum characters of attribute values, some of which clients choose. */
const MAX_VALUE_LENGTH = 1_024

const KINDS = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

const propagator = new W3CTraceContextPropagator()

export class SpanPipeline {
  readonly #provider: BasicTracerProvider
  readonly #tracer

  constructor(config: TracingConfig, version: string, { threadIndex, metrics, log }: Host) {
    this.#provider = new BasicTracerProvider({
      spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
      resource: resourceFromAttributes({
        'service.name': config.serviceName,
        'service.version': version,
        'weir.thread': threadIndex,
      }),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(config.sampleRatio) }),
      spanProcessors: [
        new BatchSpanProcessor(
          new WatchedExporter(
            new OTLPTraceExporter({
              url: config.endpoint,
              headers: config.headers,
              timeoutMillis: config.exportTimeoutMs,
            }),
            metrics,
            log,
          ),
          {
            maxExportBatchSize: Math.min(config.batchSpans, config.maxQueueSpans),
            maxQueueSize: config.maxQueueSpans,
            scheduledDelayMillis: config.intervalMs,
            exportTimeoutMillis: config.exportTimeoutMs,
          },
        ),
      ],
    })
    this.#tracer = this.#provider.getTracer('weir', version)
  }

  /** Starts the span of a request, as a child of the caller's trace context if there is one. */
  openServerSpan(name: string, caller: TraceHeaders, attributes: Attributes, atMs: number): OpenSpan {
    const parent = propagator.extract(ROOT_CONTEXT, caller, {
      keys: () => ['traceparent', 'tracestate'],
      get: (headers, key) => headers[key as keyof TraceHeaders],
    })
    return this.#open(name, SpanKind.SERVER, parent, attributes, atMs)
  }

  #open(name: string, kind: SpanKind, parent: Context, attributes: Attributes, atMs: number): OpenSpan {
    const span = this.#tracer.startSpan(name, { kind, attributes, startTime: toEpochMs(atMs) }, parent)
    const context = trace.setSpan(parent, span)
    return {
      set: (more) => void span.setAttributes(more),
      end: (error, endMs) => endSpan(span, error, endMs),
      headers: () => headersOf(context),
      child: (childKind, childName, childAttributes, childAtMs) =>
        this.#open(childName, KINDS[childKind], context, childAttributes, childAtMs),
    }
  }

  /** Exports pending spans, within the export timeout. */
  async close(): Promise<void> {
    await this.#provider.shutdown()
  }
}

/** @see SpanStatusCode of the API: 2 is error; written out, since importing the enum object loads nothing else */
const STATUS_ERROR = 2

function endSpan(span: Span, error: string | null, atMs: number): void {
  if (error !== null) span.setStatus({ code: STATUS_ERROR, message: error })
  span.end(toEpochMs(atMs))
}

function headersOf(context: Context): TraceHeaders {
  const headers: { traceparent?: string; tracestate?: string } = {}
  propagator.inject(context, headers, {
    set: (carrier, key, value) => {
      carrier[key as keyof TraceHeaders] = value
    },
  })
  return headers
}

function toEpochMs(atMs: number): number {
  return performance.timeOrigin + atMs
}

/** Counts failed exports, and logs the first failure and the recovery. */
export class WatchedExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #exports: FailureLog
  readonly #failures: CounterHandle
  readonly #lostSpans: CounterHandle

  constructor(exporter: SpanExporter, metrics: Metrics, log: Logger) {
    this.#exporter = exporter
    this.#exports = new FailureLog(log, 'span export failed, spans are lost')
    const counter = (name: string, help: string) => metrics.counter({ name, help }).labels()
    this.#failures = counter('weir_tracing_export_failures_total', 'Failed exports of spans.')
    this.#lostSpans = counter('weir_tracing_lost_spans_total', 'Spans lost by failed exports.')
  }

  export(spans: ReadableSpan[], callback: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#note(result, spans.length)
      callback(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.()
  }

  #note({ code, error }: ExportResult, spans: number): void {
    const hasFailed = code !== ExportResultCode.SUCCESS
    if (hasFailed) {
      this.#failures.value += 1
      this.#lostSpans.value += spans
    }
    if (hasFailed) this.#exports.failed(error)
    else this.#exports.succeeded()
  }
}
