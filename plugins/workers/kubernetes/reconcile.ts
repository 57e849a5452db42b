/** Registers and removes workers so that they match the pods. Each run continues where the last one stopped. */
import {
  type CounterHandle,
  GatewayError,
  type GaugeHandle,
  type HistogramHandle,
  type KnownWorker,
  type Logger,
  type MetricFamily,
  type Metrics,
  type WorkerRegistryService,
} from '#kernel'
import { POD_SPEC_LABEL, POD_UID_LABEL, type PodWorker } from './pod.ts'

const SOURCE = 'kubernetes'

export class Reconciler {
  /** Of one comparison, seconds. */
  readonly duration: HistogramHandle
  readonly #registry: WorkerRegistryService
  readonly #log: Logger
  readonly #registrations: MetricFamily<CounterHandle>
  readonly #removals: MetricFamily<CounterHandle>
  readonly #managed: GaugeHandle
  /** Ids of our registrations that may not be listed yet, by URL. */
  readonly #begun = new Map<string, string>()
  /** Specifications of the last replacements, by id of the worker; a running one is not started again. */
  readonly #replaced = new Map<string, string>()
  /** A pod waits for the removal of the worker that has its URL. */
  isWaiting = false

  constructor(registry: WorkerRegistryService, log: Logger, metrics: Metrics) {
    this.#registry = registry
    this.#log = log
    this.#registrations = metrics.counter({
      name: 'weir_discovery_registrations_total',
      help: 'Workers registered by discovery.',
      labels: ['source', 'result'],
    })
    this.#removals = metrics.counter({
      name: 'weir_discovery_deregistrations_total',
      help: 'Workers removed by discovery.',
      labels: ['source', 'reason'],
    })
    const labels = ['source']
    const durationHelp = 'Duration of one comparison of pods and workers.'
    this.duration = metrics
      .histogram({ name: 'weir_discovery_sync_duration_seconds', help: durationHelp, labels })
      .labels(SOURCE)
    this.#managed = metrics
      .gauge({ name: 'weir_discovery_workers_discovered', help: 'Workers managed by discovery.', labels })
      .labels(SOURCE)
  }

  /** Changes only workers with the label of a pod, never those registered by other means. */
  run(podWorkers: readonly PodWorker[]): void {
    const podWorkersByUrl = new Map(podWorkers.map((worker) => [worker.url, worker]))
    const ours = this.#ourWorkers()
    for (const [url, worker] of ours) {
      const podWorker = podWorkersByUrl.get(url)
      if (podWorker === undefined) this.#remove(worker, 'pod_gone')
      else if (podWorker.podUid !== worker.labels[POD_UID_LABEL]) this.#remove(worker, 'pod_replaced')
      else this.#follow(worker, podWorker)
    }
    this.isWaiting = false
    let count = 0
    for (const podWorker of podWorkersByUrl.values()) {
      const known = ours.get(podWorker.url)
      const status = known && this.#registry.find(known.id)?.status
      if (status === 'draining') this.isWaiting = true
      if (status !== undefined && status !== 'failed') count++
      else if (this.#register(podWorker)) count++
    }
    this.#managed.value = count
  }

  /** Replacements that have failed are tried again at the next run. */
  retryReplacements(): void {
    this.#replaced.clear()
  }

  /** Labels or annotations of the pod may have changed. */
  #follow(worker: KnownWorker, { url, spec, body }: PodWorker): void {
    if (worker.status === 'draining') return
    if (worker.labels[POD_SPEC_LABEL] === spec) this.#replaced.delete(worker.id)
    else if (this.#replaced.get(worker.id) !== spec) {
      this.#replaced.set(worker.id, spec)
      try {
        this.#registry.replace(worker.id, body)
        this.#log.info({ worker: url, spec }, 'pod changed, replacing its worker')
      } catch (err) {
        // An engine with data-parallel ranks is registered again after its removal.
        if (err instanceof GatewayError && err.code === 'replace_unsupported')
          this.#remove(worker, 'pod_changed')
        else this.#log.warn({ err, worker: url }, 'replacing worker of pod failed')
      }
    }
  }

  #ourWorkers(): Map<string, KnownWorker> {
    const ours = new Map<string, KnownWorker>()
    for (const worker of this.#registry.list())
      if (worker.labels[POD_UID_LABEL] !== undefined) ours.set(worker.url, worker)
    for (const [url, id] of this.#begun) {
      const worker = this.#registry.find(id)
      if (worker === undefined) this.#begun.delete(url)
      else if (!ours.has(url)) ours.set(url, worker)
    }
    return ours
  }

  #register(podWorker: PodWorker): boolean {
    try {
      const { id } = this.#registry.register(podWorker.body)
      this.#begun.set(podWorker.url, id)
      this.#log.info({ worker: podWorker.url, pod_uid: podWorker.podUid }, 'pod registered as worker')
      this.#registrations.labels(SOURCE, 'success').inc()
      return true
    } catch (err) {
      // Retried at the next run: the queue was full, or a worker with this URL exists.
      this.#log.warn({ err, worker: podWorker.url }, 'pod registration failed')
      this.#registrations.labels(SOURCE, 'failure').inc()
      return false
    }
  }

  #remove(worker: KnownWorker, reason: 'pod_gone' | 'pod_replaced' | 'pod_changed'): void {
    if (worker.status === 'draining') return
    try {
      this.#registry.remove(worker.id)
      this.#begun.delete(worker.url)
      this.#log.info({ worker: worker.url, reason }, 'removing worker of pod')
      this.#removals.labels(SOURCE, reason).inc()
    } catch (err) {
      this.#log.warn({ err, worker: worker.url }, 'removal of worker of pod failed')
    }
  }
}
