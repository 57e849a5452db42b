/** Carries removals out: no new requests at once, time for running ones, then out of the table. */
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { drainWorker } from './drain.ts'
import type { JobOptions } from './jobs.ts'
import type { Worker } from './worker.ts'

export class Removals {
  readonly #parts: ControlParts
  /** Ids whose removal is under way. */
  readonly #removing = new Set<string>()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  /**
   * Stops new requests before it returns; the rest happens in the background. Does nothing the second time.
   * @throws job_queue_full
   * @source routes facts 16.10, routing facts 2.9
   */
  begin(worker: Worker): void {
    if (this.#removing.has(worker.id)) return
    const { jobs, balance } = this.#parts
    const { slot } = worker.entry
    jobs.requireRoom()
    const settleSecs = balance.status(slot) === 'ready' ? worker.health.drainSettleSecs : 0
    this.#leave(worker)
    balance.setStatus(slot, 'draining')
    jobs.submit(this.#options(worker, false), async (job) => {
      if (settleSecs > 0) await drainWorker(() => balance.inFlight(slot), settleSecs, job)
      await this.#takeOut(worker)
    })
  }

  /** Takes a worker out whose checks have failed for good, where the configuration wants that. */
  removeFailed(worker: Worker): void {
    const { config, log, jobs } = this.#parts
    if (!config.removeUnhealthy || this.#removing.has(worker.id)) return
    log.warn({ worker: worker.spec.url }, 'failed worker is removed')
    this.#leave(worker)
    jobs.submit(this.#options(worker, true), () => this.#takeOut(worker))
  }

  #options(worker: Worker, isExempt: boolean): JobOptions {
    const budgetMs = worker.health.drainSettleSecs * 1000 + BUDGET_MARGIN_MS
    return { kind: 'RemoveWorker', url: worker.spec.url, budgetMs, isExempt }
  }

  /** From here on nothing brings the worker back, not even a restart. */
  #leave(worker: Worker): void {
    const { jobs, checks, saved } = this.#parts
    this.#removing.add(worker.id)
    jobs.cancel(worker.spec.url, 'AddWorker')
    checks.unwatch(worker.id)
    void saved.drop(worker)
  }

  async #takeOut(worker: Worker): Promise<void> {
    const { registry, checks, log } = this.#parts
    checks.unwatch(worker.id)
    await registry.remove(worker.id)
    this.#removing.delete(worker.id)
    log.info({ worker: worker.spec.url, id: worker.id }, 'worker is removed')
  }
}
