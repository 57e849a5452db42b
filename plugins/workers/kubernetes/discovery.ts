/** Reconciles pods and workers after each change of a pod, after removals that a pod waits for, and at regular intervals. */
import {
  defineReplica,
  type GaugeHandle,
  type Host,
  token,
  type WorkerRegistryService,
  WorkerTableReplica,
} from '#kernel'
import type { KubernetesConfig } from './config.ts'
import { commonSelector, podWorkers } from './pod.ts'
import type { PodWatch } from './pod-watch.ts'
import { Reconciler } from './reconcile.ts'

/** Named in the readiness of a gateway that cannot discover workers. */
export const PodDiscovery = token<{ readonly problem: string | null }>('kubernetes')
/** Published by control; null while pods can be listed and watched. */
export const DiscoveryProblemReplica = defineReplica<string | null>('kubernetes.problem', null)

export class Discovery {
  readonly #host: Host
  readonly #config: KubernetesConfig
  readonly #reconciler: Reconciler
  readonly #up: GaugeHandle
  #watch: PodWatch | null = null
  #changeTimer: NodeJS.Timeout | null = null
  #resyncTimer: NodeJS.Timeout | null = null

  constructor(host: Host, config: KubernetesConfig, registry: WorkerRegistryService) {
    this.#host = host
    this.#config = config
    this.#reconciler = new Reconciler(registry, host.log, host.metrics)
    this.#up = host.metrics
      .gauge({
        name: 'weir_discovery_up',
        help: '1 while discovery can list and watch, otherwise 0.',
        labels: ['source'],
      })
      .labels('kubernetes')
    this.#up.value = 1
    host.replica(WorkerTableReplica).onChange(() => {
      if (this.#reconciler.isWaiting) this.#changed()
    })
  }

  /** @throws Error if the cluster is not configured */
  async start(): Promise<void> {
    // Loaded on demand, since the client is large.
    const { PodWatch } = await import('./pod-watch.ts')
    const { kubeconfig, namespace, resyncSecs } = this.#config
    this.#watch = new PodWatch({
      kubeconfig,
      namespace,
      labelSelector: commonSelector(this.#config),
      log: this.#host.log,
      onChange: () => this.#changed(),
      onProblem: (problem) => {
        this.#up.value = problem === null ? 1 : 0
        void this.#host.publish(DiscoveryProblemReplica, problem)
      },
    })
    this.#watch.start()
    this.#resyncTimer = setInterval(() => {
      this.#reconciler.retryReplacements()
      this.#reconcile()
    }, resyncSecs * 1_000)
    this.#resyncTimer.unref()
  }

  async stop(): Promise<void> {
    if (this.#changeTimer !== null) clearTimeout(this.#changeTimer)
    if (this.#resyncTimer !== null) clearInterval(this.#resyncTimer)
    const watch = this.#watch
    this.#watch = null
    await watch?.stop()
  }

  #changed(): void {
    if (this.#changeTimer !== null || this.#watch === null) return
    this.#changeTimer = setTimeout(() => {
      this.#changeTimer = null
      this.#reconcile()
    }, this.#config.coalesceMs)
  }

  #reconcile(): void {
    const watch = this.#watch
    if (watch === null || !watch.isSynced) return
    const startedAtMs = performance.now()
    this.#reconciler.run(watch.pods().flatMap((pod) => podWorkers(pod, this.#config)))
    this.#reconciler.duration.observe((performance.now() - startedAtMs) / 1_000)
  }
}
