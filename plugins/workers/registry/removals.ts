/** Removes workers: no new requests from the start, a grace period for running ones, then out of the table. */
import type { WorkerStatus } from '#kernel'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import type { JobContext, JobOptions } from './jobs.ts'
import { isHealthy, type Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'

export class Removals {
  readonly #parts: ControlParts
  /** Ids of workers being removed. */
  readonly #removing = new Set<string>()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  /**
   * Stops new requests before it returns; the rest happens in the background. Idempotent. All workers of the engine
   * are removed together.
   * @param isExempt not subject to the queue limit: another gateway has accepted the removal
   * @throws job_queue_full
   */
  begin(worker: Worker, isExempt = false): void {
    if (this.#removing.has(worker.id)) return
    const { jobs, balance, registry } = this.#parts
    if (!isExempt) jobs.requireRoom()
    const engine = registry.engineOf(worker)
    const slots = engine.map(({ entry }) => entry.slot)
    const isServing = slots.some((slot) => isHealthy(balance.status(slot)))
    const settleSecs = isServing ? worker.health.drainSettleSecs : 0
    const statuses = slots.map((slot) => balance.status(slot))
    const deleted = this.#detach(engine)
    for (const slot of slots) balance.setStatus(slot, 'draining')
    const inFlight = () => slots.reduce((sum, slot) => sum + balance.inFlight(slot), 0)
    jobs.submit(this.#options(worker, isExempt), async (job) => {
      await deleted.catch((error: unknown) => {
        this.#restore(engine, statuses)
        throw error
      })
      if (settleSecs > 0) await drainWorker(inFlight, settleSecs, job)
      await this.#finish(engine)
    })
  }

  /** Removes the engine of a failed worker if `removeUnhealthy` is set. */
  removeFailed(worker: Worker): void {
    const { config, log, jobs, registry } = this.#parts
    if (!config.removeUnhealthy || this.#removing.has(worker.id)) return
    log.warn({ worker: worker.spec.url }, 'removing failed worker')
    const engine = registry.engineOf(worker)
    this.#detach(engine).catch((err: unknown) =>
      log.error({ worker: worker.spec.url, err }, 'removed worker not deleted from storage'),
    )
    jobs.submit(this.#options(worker, true), () => this.#finish(engine))
  }

  #options(worker: Worker, isExempt: boolean): JobOptions {
    const budgetMs = worker.health.drainSettleSecs * 1000 + BUDGET_MARGIN_MS
    return { kind: 'RemoveWorker', url: workerKey(worker.spec.url), budgetMs, isExempt }
  }

  /** Cancels registrations and probes, and deletes the workers from storage so that a restart does not restore them. */
  #detach(engine: readonly Worker[]): Promise<void> {
    const { jobs, checks, saved } = this.#parts
    for (const worker of engine) {
      this.#removing.add(worker.id)
      jobs.cancel(workerKey(worker.spec.url), 'AddWorker')
      checks.unwatch(worker.id)
    }
    const deleted = saved.drop(engine)
    // Handled by the job, which may start later.
    deleted.catch(() => undefined)
    return deleted
  }

  /** Undoes a removal that could not be stored, since a restart would undo it: the workers serve as before. */
  #restore(engine: readonly Worker[], statuses: readonly WorkerStatus[]): void {
    const { balance, checks } = this.#parts
    for (const [index, worker] of engine.entries()) {
      this.#removing.delete(worker.id)
      balance.setStatus(worker.entry.slot, statuses[index])
      checks.watch(worker)
    }
  }

  async #finish(engine: readonly Worker[]): Promise<void> {
    const { registry, checks, loads, log } = this.#parts
    for (const { id } of engine) checks.unwatch(id)
    // First, since the slots may be reused by other workers.
    await loads.forget(engine)
    await registry.remove(engine)
    for (const { id, entry } of engine) {
      this.#removing.delete(id)
      log.info({ worker: entry.url, id }, 'worker removed')
    }
  }
}

const DRAIN_POLL_MS = 100

/**
 * Resolves when no request is in flight or `settleSecs` have passed. Checks first after 100 ms, so that clients can see
 * the status `draining`.
 *
 * @param inFlight requests running on the worker, over all threads
 */
async function drainWorker(inFlight: () => number, settleSecs: number, job: JobContext): Promise<void> {
  const endsAtMs = performance.now() + settleSecs * 1000
  for (;;) {
    const leftMs = endsAtMs - performance.now()
    if (leftMs <= 0) return
    await job.wait(Math.min(DRAIN_POLL_MS, leftMs))
    if (inFlight() === 0) return
  }
}
