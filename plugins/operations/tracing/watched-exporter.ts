/** Exporter with failure metrics; logs the first failure and the recovery. */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import type { CounterHandle, Logger, Metrics } from '#kernel'

export class WatchedExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #log: Logger
  readonly #failures: CounterHandle
  readonly #lostSpans: CounterHandle
  #isFailing = false

  constructor(exporter: SpanExporter, metrics: Metrics, log: Logger) {
    this.#exporter = exporter
    this.#log = log
    this.#failures = metrics
      .counter({
        name: 'weir_tracing_export_failures_total',
        help: 'Failed exports of spans.',
      })
      .labels()
    this.#lostSpans = metrics
      .counter({ name: 'weir_tracing_lost_spans_total', help: 'Spans lost by failed exports.' })
      .labels()
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
    if (hasFailed === this.#isFailing) return
    this.#isFailing = hasFailed
    if (hasFailed) this.#log.warn({ reason: error?.message }, 'span export failed, spans are lost')
    else this.#log.info({}, 'span export recovered')
  }
}
