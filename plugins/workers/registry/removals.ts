/** Carries removals out: no new requests at once, time for running ones, then out of the table. */
import type { WorkerStatus } from '#kernel'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { drainWorker } from './drain.ts'
import type { JobOptions } from './jobs.ts'
import type { Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'

export class Removals {
  readonly #parts: ControlParts
  /** Ids whose removal is under way. */
  readonly #removing = new Set<string>()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  /**
   * Stops new requests before it returns; the rest happens in the background. Does nothing the second time.
   * All workers of the engine leave together.
   * @throws job_queue_full
   */
  begin(worker: Worker): void {
    if (this.#removing.has(worker.id)) return
    const { jobs, balance, registry } = this.#parts
    jobs.requireRoom()
    const engine = registry.engineOf(worker)
    const slots = engine.map(({ entry }) => entry.slot)
    const isServing = slots.some((slot) => balance.status(slot) === 'ready')
    const settleSecs = isServing ? worker.health.drainSettleSecs : 0
    const statuses = slots.map((slot) => balance.status(slot))
    const forgotten = this.#leave(engine)
    for (const slot of slots) balance.setStatus(slot, 'draining')
    const inFlight = () => slots.reduce((sum, slot) => sum + balance.inFlight(slot), 0)
    jobs.submit(this.#options(worker, false), async (job) => {
      await forgotten.catch((error: unknown) => {
        this.#stay(engine, statuses)
        throw error
      })
      if (settleSecs > 0) await drainWorker(inFlight, settleSecs, job)
      await this.#takeOut(engine)
    })
  }

  /** Takes an engine out whose checks have failed for good, where the configuration wants that. */
  removeFailed(worker: Worker): void {
    const { config, log, jobs, registry } = this.#parts
    if (!config.removeUnhealthy || this.#removing.has(worker.id)) return
    log.warn({ worker: worker.spec.url }, 'failed worker is removed')
    const engine = registry.engineOf(worker)
    this.#leave(engine).catch((err: unknown) =>
      log.error({ worker: worker.spec.url, err }, 'worker is still saved'),
    )
    jobs.submit(this.#options(worker, true), () => this.#takeOut(engine))
  }

  #options(worker: Worker, isExempt: boolean): JobOptions {
    const budgetMs = worker.health.drainSettleSecs * 1000 + BUDGET_MARGIN_MS
    return { kind: 'RemoveWorker', url: workerKey(worker.spec.url), budgetMs, isExempt }
  }

  /** From here on nothing brings the workers back, not even a restart. */
  #leave(engine: readonly Worker[]): Promise<void> {
    const { jobs, checks, saved } = this.#parts
    for (const worker of engine) {
      this.#removing.add(worker.id)
      jobs.cancel(workerKey(worker.spec.url), 'AddWorker')
      checks.unwatch(worker.id)
    }
    const forgotten = saved.drop(engine)
    // Heard by the job, which may begin later.
    forgotten.catch(() => undefined)
    return forgotten
  }

  /** A removal that would be undone by a restart is not done: the workers serve as before. */
  #stay(engine: readonly Worker[], statuses: readonly WorkerStatus[]): void {
    const { balance, checks } = this.#parts
    for (const [index, worker] of engine.entries()) {
      this.#removing.delete(worker.id)
      balance.setStatus(worker.entry.slot, statuses[index])
      checks.watch(worker)
    }
  }

  async #takeOut(engine: readonly Worker[]): Promise<void> {
    const { registry, checks, loads, log } = this.#parts
    for (const { id } of engine) checks.unwatch(id)
    // Before their rows may serve others, to whom these reports would seem to belong.
    await loads.forget(engine)
    await registry.remove(engine)
    for (const { id, entry } of engine) {
      this.#removing.delete(id)
      log.info({ worker: entry.url, id }, 'worker is removed')
    }
  }
}
