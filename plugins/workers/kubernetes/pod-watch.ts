/** Watches pods through the official client. */

import { CoreV1Api, KubeConfig, makeInformer, type V1Pod } from '@kubernetes/client-node'
import { type Logger, messageOf } from '#kernel'
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
  /** Why pods cannot be listed or watched, and what to do; null while they can. */
  readonly onProblem: (problem: string | null) => void
}

export class PodWatch {
  readonly #informer: ReturnType<typeof makeInformer<V1Pod>>
  readonly #options: PodWatchOptions
  #retryMs = FIRST_RETRY_MS
  #retryTimer: NodeJS.Timeout | null = null
  #isStopped = false
  /** Whether the list has been read once; before that, missing pods are unknown, not gone. */
  isSynced = false
  #problem: string | null = null
  #failures = 0

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
    // The client resolves also after an error event.
    const failures = this.#failures
    this.#informer.start().then(
      () => {
        if (this.#failures === failures) this.#recovered()
        this.#options.onChange()
      },
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

  #recovered(): void {
    this.#retryMs = FIRST_RETRY_MS
    if (this.#problem === null) return
    this.#setProblem(null)
    this.#options.log.info({}, 'pod watch recovered')
  }

  #setProblem(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#options.onProblem(problem)
  }

  #changed(): void {
    this.#retryMs = FIRST_RETRY_MS
    this.#options.onChange()
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return
    this.#failures++
    const problem = problemOf(error, this.#options.namespace)
    if (problem !== this.#problem) this.#options.log.warn({ reason: problem }, 'pod watch failed')
    this.#setProblem(problem)
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(() => this.start(), this.#retryMs)
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2)
  }
}

const MAX_REASON = 200

/** Cause and remedy in one line; the client's message has headers and body of the response. */
function problemOf(error: unknown, namespace: string | null): string {
  const [code] = error instanceof Error ? [Number('code' in error ? error.code : Number.NaN)] : [Number.NaN]
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : code
  const scope = namespace === null ? 'in all namespaces, by a ClusterRole' : `in the namespace ${namespace}`
  if (status === 403)
    return `the API server answered 403: allow the service account to list and watch pods ${scope}`
  if (status === 401) return 'the API server answered 401: the token or certificate is not valid'
  if (Number.isInteger(status) && status >= 400) return `the API server answered ${status}`
  const { cause } = error instanceof Error ? error : { cause: undefined }
  const reason = cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`
  return `the API server cannot be reached: ${reason.slice(0, MAX_REASON)}`
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
