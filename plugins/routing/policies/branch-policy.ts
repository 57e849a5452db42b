/**
 * Base of the policies that decide by branches: counts each pick by its branch, and keeps the last one for `explain`.
 * @hot
 */
import type { CandidateView, CounterHandle, Metrics } from '#kernel'
import type { WorkerCounters } from './worker-counters.ts'

export abstract class BranchPolicy<Branch extends string> {
  protected branch: Branch
  /** Of the picked worker; -1 for none. */
  protected slot = -1
  /** A handle per branch, so that counting needs no lookup. */
  private readonly picks: Readonly<Record<Branch, CounterHandle>>
  private readonly processed: WorkerCounters | null

  /**
   * @param name of the counter
   * @param processed counts the picks of each worker, for `findLeastLoaded`; null if the policy does not use that
   */
  constructor(
    metrics: Metrics,
    name: string,
    branches: readonly Branch[],
    processed: WorkerCounters | null = null,
  ) {
    const family = metrics.counter({ name, help: 'Picks of the policy, by decision.', labels: ['branch'] })
    const handles = branches.map((branch) => [branch, family.labels(branch)])
    this.picks = Object.fromEntries(handles) as Record<Branch, CounterHandle>
    this.branch = branches[0]
    this.processed = processed
  }

  explain(): string {
    return this.slot < 0 ? this.branch : `${this.branch}: slot ${this.slot}`
  }

  /** @param index position in the view; -1 if no worker is picked */
  protected chosen(candidates: CandidateView, index: number, branch: Branch): number {
    this.branch = branch
    this.slot = index < 0 ? -1 : candidates.slot(index)
    this.picks[branch].inc()
    if (this.slot >= 0) this.processed?.addProcessed(this.slot)
    return index
  }
}
