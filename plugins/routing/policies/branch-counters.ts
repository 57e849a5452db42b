/** Counts which way the choices of a policy went: one counter with a `branch` label, its children made beforehand. */
import type { CounterHandle, Metrics } from '#kernel'

/** @param name of the metric @returns a handle per branch, for counting without a look-up */
export function branchCounters<Branch extends string>(
  metrics: Metrics,
  name: string,
  branches: readonly Branch[],
): Readonly<Record<Branch, CounterHandle>> {
  const family = metrics.counter({ name, help: 'Choices by the way they were made.', labels: ['branch'] })
  return Object.fromEntries(branches.map((branch) => [branch, family.labels(branch)])) as Record<
    Branch,
    CounterHandle
  >
}
