/** Prefill/decode pairs: bootstrap server, load report and metrics. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, PairLoad, WorkerEntry } from '#kernel'
import { type LabelLimit, modelLabelLimit } from '../metrics/label-limit.ts'

export type BootstrapServer = Pick<WorkerEntry, 'url' | 'bootstrapHost' | 'bootstrapPort' | 'dataParallel'>

/**
 * Host of the bootstrap server of a prefill worker, by which the engines of a pair connect.
 * @returns without the brackets of an IPv6 address
 */
export function bootstrapHostOf({ url, bootstrapHost, dataParallel }: BootstrapServer): string {
  if (bootstrapHost !== null) return bootstrapHost
  // The URL parser handles hosts of http URLs only.
  const base = (dataParallel?.baseUrl ?? url).replace(/^grpc(s?):/, 'http$1:')
  const host = URL.parse(base)?.hostname ?? 'localhost'
  return host.startsWith('[') ? host.slice(1, -1) : host
}

const NOT_REPORTED = -1

/** Members of the report, as engines send them over HTTP. */
export interface DisaggregationReport {
  readonly mode?: unknown
  readonly prefill_prealloc_queue_reqs?: unknown
  readonly prefill_inflight_queue_reqs?: unknown
  readonly decode_prealloc_queue_reqs?: unknown
  readonly decode_transfer_queue_reqs?: unknown
  readonly decode_retracted_queue_reqs?: unknown
  readonly kv_transfer_speed_gb_s?: unknown
  readonly kv_transfer_latency_ms?: unknown
}

/** @returns undefined if the engine is not part of a pair or does not report it */
export function toPairLoad(report: DisaggregationReport | null | undefined): PairLoad | undefined {
  const role = report?.mode
  if (report === null || report === undefined || (role !== 'prefill' && role !== 'decode')) return undefined
  const queues =
    role === 'prefill'
      ? [report.prefill_prealloc_queue_reqs, report.prefill_inflight_queue_reqs]
      : [
          report.decode_prealloc_queue_reqs,
          report.decode_transfer_queue_reqs,
          report.decode_retracted_queue_reqs,
        ]
  const reported = queues.map(toNumber).filter((count) => count !== NOT_REPORTED)
  return {
    role,
    queuedRequests: reported.length === 0 ? NOT_REPORTED : reported.reduce((sum, count) => sum + count, 0),
    transferMs: toNumber(report.kv_transfer_latency_ms),
    transferRate: toNumber(report.kv_transfer_speed_gb_s),
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : NOT_REPORTED
}

/** Histograms of one model and engine. */
export interface PairTimes {
  /** From sending the requests to the end of the prefill response, in seconds. */
  readonly prefill: HistogramHandle
  /** From sending the requests to the first relayed byte of the decode response, in seconds. */
  readonly firstToken: HistogramHandle
  /** From the end of the prefill response to sending the decode request, in seconds. */
  readonly transfer: HistogramHandle
}

/** KV transfer between the engines of a pair in which the gateway takes part. */
export type ConnectorMode = 'mooncake' | 'nixl' | 'passthrough'

/** Declared by each plugin that pairs workers; the series are shared. */
export class PairMetrics {
  readonly #models: LabelLimit = modelLabelLimit()
  readonly #prefill: MetricFamily<HistogramHandle>
  readonly #firstToken: MetricFamily<HistogramHandle>
  readonly #transfer: MetricFamily<HistogramHandle>
  readonly #bootstrapFailures: CounterHandle
  readonly #connectors: MetricFamily<CounterHandle>
  readonly #transferFailures: CounterHandle

  constructor(metrics: Metrics) {
    const labels = ['backend_type', 'model', 'runtime']
    this.#prefill = metrics.histogram({
      name: 'weir_pd_prefill_duration_seconds',
      help: 'Duration of the prefill request.',
      labels,
    })
    this.#firstToken = metrics.histogram({
      name: 'weir_pd_ttft_seconds',
      help: 'Time from the start of prefill to the first byte of the decode response.',
      labels,
    })
    this.#transfer = metrics.histogram({
      name: 'weir_pd_kv_transfer_duration_seconds',
      help: 'Time from the end of prefill to the decode request, for sequential pairs.',
      labels,
    })
    this.#connectors = metrics.counter({
      name: 'weir_pd_kv_connector_mode_total',
      help: 'Sequential pairs, by KV connector.',
      labels: ['mode'],
    })
    this.#transferFailures = metrics
      .counter({
        name: 'weir_pd_kv_transfer_failures_total',
        help: 'Pairs whose prefill response lacked the KV transfer parameters.',
      })
      .labels()
    this.#bootstrapFailures = metrics
      .counter({
        name: 'weir_pd_bootstrap_failures_total',
        help: 'Requests to which the bootstrap parameters of the pair could not be added.',
      })
      .labels()
  }

  of(prefill: WorkerEntry, model: string): PairTimes {
    const labels = ['pd', this.#models.admit(model), prefill.runtimeType]
    return {
      prefill: this.#prefill.labels(...labels),
      firstToken: this.#firstToken.labels(...labels),
      transfer: this.#transfer.labels(...labels),
    }
  }

  onConnector(mode: ConnectorMode): void {
    this.#connectors.labels(mode).value += 1
  }

  onTransferFailure(): void {
    this.#transferFailures.value += 1
  }

  onBootstrapFailure(): void {
    this.#bootstrapFailures.value += 1
  }
}
