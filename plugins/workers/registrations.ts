/** Carries registrations out: onboards a worker in the background, puts it into the table, and makes it ready. */
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import type { JobContext, JobOptions } from './jobs.ts'
import { onboard } from './onboard.ts'
import type { Reservation } from './registry.ts'
import type { WorkerSpec } from './spec.ts'
import { buildWorker, type Origin, type Worker } from './worker.ts'

export class Registrations {
  readonly #parts: ControlParts

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  /** Registers a reserved worker. @throws job_queue_full, but not for workers of the configuration */
  begin(reservation: Reservation, origin: Origin): void {
    const { id, spec } = reservation
    this.#submit(spec.url, origin === 'config', async (job) => {
      const findings = await onboard(spec, job, this.#parts)
      job.signal.throwIfAborted()
      const worker = await this.#parts.registry.add({ id, spec, findings, origin })
      await this.#activate(worker.id)
    })
  }

  /** Onboards a registered worker anew; until that has worked, the old one serves. @throws job_queue_full */
  replace(worker: Worker, spec: WorkerSpec): void {
    this.#submit(spec.url, false, (job) => this.#onboardAgain(worker, spec, job))
  }

  /** A saved worker is listed already; its engine may have changed meanwhile, so it is looked at like a new one. */
  restore(worker: Worker): void {
    this.#submit(worker.spec.url, true, async (job) => {
      try {
        await this.#onboardAgain(worker, worker.spec, job)
      } catch (error) {
        if (this.#parts.registry.isCurrent(worker)) this.#parts.checks.watch(worker)
        throw error
      }
    })
  }

  isUnderWay(url: string): boolean {
    return this.#parts.jobs.isUnfinished(url, 'AddWorker')
  }

  cancel(url: string): void {
    this.#parts.jobs.cancel(url, 'AddWorker')
  }

  #submit(url: string, isExempt: boolean, work: (job: JobContext) => Promise<void>): void {
    const { startupDelaySecs, startupTimeoutSecs } = this.#parts.config
    const budgetMs = (startupDelaySecs + startupTimeoutSecs) * 1000 + BUDGET_MARGIN_MS
    const options: JobOptions = { kind: 'AddWorker', url, budgetMs, isExempt }
    this.#parts.jobs.submit(options, work)
  }

  /** @throws worker_changed when another change landed first */
  async #onboardAgain(seen: Worker, spec: WorkerSpec, job: JobContext): Promise<void> {
    const { registry, config } = this.#parts
    const findings = await onboard(spec, job, this.#parts)
    job.signal.throwIfAborted()
    if (!registry.isCurrent(seen)) throw workerErrors.worker_changed()
    const { slot, revision } = seen.entry
    await registry.put(buildWorker({ ...seen, spec, findings }, slot, revision + 1, config))
    await this.#activate(seen.id)
  }

  /**
   * The last step: the workflow has just seen the worker answer, so it is ready. A patch that landed while the table
   * was under way is as good; a removal is not.
   */
  async #activate(id: string): Promise<void> {
    const { registry, balance, checks, saved, log } = this.#parts
    const worker = registry.byId(id)
    if (worker === undefined || !registry.isCurrent(worker)) return
    balance.setStatus(worker.entry.slot, 'ready')
    checks.watch(worker)
    log.info({ worker: worker.spec.url, id, runtime: worker.entry.runtimeType }, 'worker is ready')
    await saved.save(worker)
  }
}
