/** Metrics of the policies. */
import type { CounterHandle, Metrics, WorkerEntry } from '#kernel'

/** Declares a counter with a `branch` label. @returns a handle per branch, so that counting needs no lookup */
export function branchCounters<Branch extends string>(
  metrics: Metrics,
  name: string,
  branches: readonly Branch[],
): Readonly<Record<Branch, CounterHandle>> {
  const family = metrics.counter({ name, help: 'Picks of the policy, by decision.', labels: ['branch'] })
  return Object.fromEntries(branches.map((branch) => [branch, family.labels(branch)])) as Record<
    Branch,
    CounterHandle
  >
}

/** Declares the gauge of sessions per worker; call on control only. Series of removed workers are deleted. */
export function declareRoutingKeyGauge(
  metrics: Metrics,
  workers: () => readonly WorkerEntry[],
  countOf: (worker: WorkerEntry) => number,
): void {
  const family = metrics.gauge({
    name: 'weir_worker_routing_keys_active',
    help: 'Sticky sessions assigned to the worker.',
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
