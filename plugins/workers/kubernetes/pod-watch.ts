/** Watches pods through the official client. */

import { CoreV1Api, KubeConfig, makeInformer, type V1Pod } from '@kubernetes/client-node'
import type { Logger } from '#kernel'
import { messageOf } from '#kernel'
import type { Pod } from './pod.ts'

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

export interface PodWatchOptions {
  /** Null uses the service account of the pod of this process. */
  readonly kubeconfig: string | null
  readonly namespace: string | null
  readonly labelSelector: string
  readonly log: Logger
  readonly onChange: () => void
}

export class PodWatch {
  readonly #informer: ReturnType<typeof makeInformer<V1Pod>>
  readonly #options: PodWatchOptions
  #retryMs = FIRST_RETRY_MS
  #retryTimer: NodeJS.Timeout | null = null
  #isStopped = false
  /** Whether the list has been read once; before that, missing pods are unknown, not gone. */
  isSynced = false

  /** @throws Error if the kubeconfig cannot be read */
  constructor(options: PodWatchOptions) {
    this.#options = options
    const { namespace, labelSelector } = options
    const config = loadKubeConfig(options.kubeconfig)
    const api = config.makeApiClient(CoreV1Api)
    const selector = labelSelector === '' ? undefined : labelSelector
    const path = namespace === null ? '/api/v1/pods' : `/api/v1/namespaces/${namespace}/pods`
    const list = async () => {
      const pods =
        namespace === null
          ? await api.listPodForAllNamespaces({ labelSelector: selector })
          : await api.listNamespacedPod({ namespace, labelSelector: selector })
      this.isSynced = true
      return pods
    }
    this.#informer = makeInformer<V1Pod>(config, path, list, selector)
    for (const verb of ['add', 'update', 'delete'] as const) this.#informer.on(verb, () => this.#changed())
    this.#informer.on('error', (error) => this.#failed(error))
  }

  /** Connects in the background and retries. */
  start(): void {
    this.#informer.start().then(
      () => this.#options.onChange(),
      (error: unknown) => this.#failed(error),
    )
  }

  pods(): Pod[] {
    return [...this.#informer.list()] as Pod[]
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
    await this.#informer.stop()
  }

  #changed(): void {
    this.#retryMs = FIRST_RETRY_MS
    this.#options.onChange()
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return
    const reason = messageOf(error)
    this.#options.log.warn({ reason, retry_ms: this.#retryMs }, 'pod watch failed')
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(() => this.start(), this.#retryMs)
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2)
  }
}

function loadKubeConfig(path: string | null): KubeConfig {
  const config = new KubeConfig()
  if (path === null) config.loadFromCluster()
  else config.loadFromFile(path)
  if (config.getCurrentCluster()?.server.includes('undefined') !== false) {
    throw new Error(
      path === null
        ? 'plugins.kubernetes.kubeconfig must be the path of a kubeconfig file, since this process does not run in a cluster'
        : `plugins.kubernetes.kubeconfig: ${path} has no current cluster`,
    )
  }
  return config
}
