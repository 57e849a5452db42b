/** Compares the workers that pods ask for with those on record and mends the difference; run again, it goes on. */
import type { KnownWorker, Logger, WorkerRegistryService } from '#kernel'
import { POD_UID_LABEL, type WantedWorker } from './pod.ts'

/** What was done, for metrics. */
export interface ReconcileListener {
  registered(result: 'success' | 'failure'): void
  deregistered(reason: 'pod_gone' | 'pod_replaced'): void
}

export class Reconciler {
  readonly #registry: WorkerRegistryService
  readonly #log: Logger
  readonly #listener: ReconcileListener
  /** Registrations of ours that may not be listed yet: URL → id. */
  readonly #begun = new Map<string, string>()

  constructor(registry: WorkerRegistryService, log: Logger, listener: ReconcileListener) {
    this.#registry = registry
    this.#log = log
    this.#listener = listener
  }

  /**
   * Workers that somebody registered by hand are never touched: ours carry the label of their pod.
   * @returns how many workers of ours there are or will be
   */
  run(wanted: readonly WantedWorker[]): number {
    const wantedByUrl = new Map(wanted.map((worker) => [worker.url, worker]))
    const ours = this.#ourWorkers()
    for (const [url, worker] of ours) {
      const want = wantedByUrl.get(url)
      if (want?.podUid === worker.labels[POD_UID_LABEL]) continue
      this.#remove(worker, want === undefined ? 'pod_gone' : 'pod_replaced')
    }
    let count = 0
    for (const want of wantedByUrl.values()) {
      const known = ours.get(want.url)
      // One that goes away is registered anew when it is gone.
      if (known !== undefined && known.status !== 'failed') count++
      else if (want.mayBeAdded && this.#register(want)) count++
    }
    return count
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

  #register(want: WantedWorker): boolean {
    try {
      const { id } = this.#registry.register(want.body)
      this.#begun.set(want.url, id)
      this.#log.info({ worker: want.url, pod_uid: want.podUid }, 'a pod became a worker')
      this.#listener.registered('success')
      return true
    } catch (err) {
      // Tried again at the next run: the queue was full, or a worker of that URL is there already.
      this.#log.warn({ err, worker: want.url }, 'a pod could not be registered as a worker')
      this.#listener.registered('failure')
      return false
    }
  }

  #remove(worker: KnownWorker, reason: 'pod_gone' | 'pod_replaced'): void {
    if (worker.status === 'draining') return
    try {
      this.#registry.remove(worker.id)
      this.#begun.delete(worker.url)
      this.#log.info({ worker: worker.url, reason }, 'the worker of a pod is removed')
      this.#listener.deregistered(reason)
    } catch (err) {
      this.#log.warn({ err, worker: worker.url }, 'the worker of a pod could not be removed')
    }
  }
}
