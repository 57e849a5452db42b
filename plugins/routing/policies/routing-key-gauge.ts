/** How many sessions stick to each worker, as a gauge. Control only: the count is one for all threads. */
import type { Metrics, WorkerEntry } from '#kernel'

/** Series of workers that left are dropped. */
export function showRoutingKeys(
  metrics: Metrics,
  workers: () => readonly WorkerEntry[],
  countOf: (worker: WorkerEntry) => number,
): void {
  const family = metrics.gauge({
    name: 'weir_worker_routing_keys_active',
    help: 'Sessions that stick to the worker.',
    labels: ['worker'],
  })
  let shown = new Set<string>()
  metrics.onCollect(() => {
    const listed = workers()
    const urls = new Set(listed.map(({ url }) => url))
    for (const url of shown) if (!urls.has(url)) family.remove(url)
    for (const url of urls) family.labels(url).value = 0
    for (const worker of listed) family.labels(worker.url).value += countOf(worker)
    shown = urls
  })
}
