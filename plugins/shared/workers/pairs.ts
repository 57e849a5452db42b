/** Prefill/decode pairs: bootstrap server, the rooms in which the engines of a pair meet, and metrics. */
import { randomFillSync } from 'node:crypto'
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, WorkerEntry } from '#kernel'
import { type LabelLimit, modelLabelLimit } from '../metrics/label-limit.ts'
import { engineUrl } from '../net/addresses.ts'

export type BootstrapServer = Pick<WorkerEntry, 'url' | 'bootstrapHost' | 'bootstrapPort' | 'dataParallel'>

/**
 * Host of the bootstrap server of a prefill worker, by which the engines of a pair connect.
 * @returns without the brackets of an IPv6 address
 */
export function bootstrapHostOf({ url, bootstrapHost, dataParallel }: BootstrapServer): string {
  if (bootstrapHost !== null) return bootstrapHost
  // The URL parser handles hosts of http URLs only.
  const base = engineUrl({ url, dataParallel }).replace(/^grpc(s?):/, 'http$1:')
  const host = URL.parse(base)?.hostname ?? 'localhost'
  return host.startsWith('[') ? host.slice(1, -1) : host
}

const drawn = new BigUint64Array(1)

/** A random number of this many bits, by which the two engines of a request find each other. */
export function drawRoom(bits: 31 | 63): bigint {
  randomFillSync(drawn)
  return BigInt.asUintN(bits, drawn[0])
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
