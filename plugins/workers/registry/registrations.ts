/** Carries registrations out: onboards a worker in the background, puts it into the table, and makes it ready. */
import type { WorkersConfig } from './config.ts'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import { type JobContext, type JobOptions, messageOf } from './jobs.ts'
import { onboard } from './onboard.ts'
import { pairDisagreements } from './pair-peers.ts'
import type { Reservation } from './registry.ts'
import type { WorkerSpec } from './spec.ts'
import type { Findings, Origin, Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'

/** Between two rounds at a worker of the configuration. */
const FIRST_PAUSE_MS = 30_000
const MAX_PAUSE_MS = 600_000

export class Registrations {
  readonly #parts: ControlParts
  #configured: WorkersConfig['workers']

  constructor(parts: ControlParts) {
    this.#parts = parts
    this.#configured = parts.config.workers
  }

  /** @param configured those that the configuration describes from now on */
  trust(configured: WorkersConfig['workers']): void {
    this.#configured = configured
  }

  /** Registers a reserved worker. @throws job_queue_full, but not for workers of the configuration */
  begin(reservation: Reservation): void {
    const { id, spec, origin } = reservation
    this.#submit(
      spec.url,
      origin === 'config',
      async (job) => {
        const findings = await this.#onboard(reservation, job)
        const { registry, saved } = this.#parts
        await registry.add({ ids: [id], spec, findings, origin })
        const worker = registry.staying(id)
        // A removal that came meanwhile has dropped it already: saved now, it would be back after a restart.
        if (worker === undefined) return
        const engine = registry.engineOf(worker)
        // Nothing is sent to it before it is saved, so that it can be taken back.
        await saved.save(engine).catch(async (error: unknown) => {
          if (registry.staying(id) !== undefined) await registry.takeBack(engine, reservation)
          throw error
        })
        this.#activate(id)
      },
      origin === 'config',
    )
  }

  /** A worker of the configuration is never given up: what is down at boot may come up at any time. */
  async #onboard(reservation: Reservation, job: JobContext): Promise<Findings> {
    const { spec, origin } = reservation
    const noted: JobContext = {
      signal: job.signal,
      wait: (waitMs) => job.wait(waitMs),
      note: (problem) => {
        job.note(problem)
        this.#parts.registry.noteProblem(spec.url, problem)
      },
    }
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      try {
        const findings = await onboard(spec, this.#trustOf(spec, origin), noted, this.#parts)
        job.signal.throwIfAborted()
        return findings
      } catch (error) {
        if (origin !== 'config' || job.signal.aborted) throw error
        noted.note(messageOf(error))
        await job.wait(pauseMs)
      }
    }
  }

  /** Onboards a registered worker anew; until that has worked, the old one serves. @throws job_queue_full */
  replace(worker: Worker, spec: WorkerSpec): void {
    this.#submit(spec.url, false, (job) => this.#onboardAgain(worker, spec, job, false))
  }

  /** A saved worker is listed already; its engine may have changed meanwhile, so it is looked at like a new one. */
  restore(worker: Worker): void {
    this.#submit(worker.spec.url, true, async (job) => {
      try {
        await this.#onboardAgain(worker, worker.spec, job, true)
      } catch (error) {
        if (this.#parts.registry.isCurrent(worker)) this.#parts.checks.watch(worker)
        throw error
      }
    })
  }

  isUnderWay(url: string): boolean {
    return this.#parts.jobs.isUnfinished(workerKey(url), 'AddWorker')
  }

  cancel(url: string): void {
    this.#parts.jobs.cancel(workerKey(url), 'AddWorker')
  }

  #submit(url: string, isExempt: boolean, work: (job: JobContext) => Promise<void>, isEndless = false): void {
    const { startupDelaySecs, startupTimeoutSecs } = this.#parts.config
    const limitMs = (startupDelaySecs + startupTimeoutSecs) * 1000 + BUDGET_MARGIN_MS
    const budgetMs = isEndless ? Number.POSITIVE_INFINITY : limitMs
    const options: JobOptions = { kind: 'AddWorker', url: workerKey(url), budgetMs, isExempt }
    this.#parts.jobs.submit(options, work)
  }

  /**
   * @param seen the first worker of its engine
   * @param isSaved with this specification, so that it serves whether or not it can be saved again
   * @throws worker_not_saved, worker_changed when another change landed first
   */
  async #onboardAgain(seen: Worker, spec: WorkerSpec, job: JobContext, isSaved: boolean): Promise<void> {
    const { registry, loads, saved, log } = this.#parts
    const findings = await onboard(spec, this.#trustOf(spec, seen.origin), job, this.#parts)
    job.signal.throwIfAborted()
    if (!registry.isCurrent(seen)) throw workerErrors.worker_changed()
    const before = registry.engineOf(seen)
    const left = before.slice(findings.rankCount ?? 1)
    await loads.forget(left)
    if (!registry.isCurrent(seen)) throw workerErrors.worker_changed()
    await registry.reshape(before, spec, findings)
    const worker = registry.staying(seen.id)
    // As above: the removal knows of it.
    if (worker === undefined) return
    const after = registry.engineOf(worker)
    await saved.save(after).catch(async (error: unknown) => {
      if (isSaved) {
        log.error({ worker: spec.url, err: error }, 'what was found out about a worker is not saved')
        return
      }
      // Ranks that have left cannot come back under their ids; with as many as before all is as it was.
      if (left.length === 0 && registry.isCurrent(worker))
        await registry.reshape(after, seen.spec, seen.findings)
      throw error
    })
    await saved
      .drop(left)
      .catch((err: unknown) => log.error({ worker: spec.url, err }, 'ranks are still saved'))
    this.#activate(seen.id)
  }

  /** Whoever replaces a worker of the configuration may not name another service for it: its key would go there. */
  #trustOf(spec: WorkerSpec, origin: Origin): Origin {
    const key = workerKey(spec.url)
    const configured = this.#configured.find(({ url }) => workerKey(url) === key)
    return (configured?.provider ?? undefined) === spec.carried.provider ? origin : 'api'
  }

  /**
   * The last step: the workflow has just seen the worker answer, so it is ready, and all of its engine. A patch that
   * landed while the table was under way is as good; a removal is not.
   */
  #activate(id: string): void {
    const { registry, balance, checks, log } = this.#parts
    const worker = registry.staying(id)
    if (worker === undefined) return
    const engine = registry.engineOf(worker)
    for (const { entry } of engine) balance.setStatus(entry.slot, 'ready')
    checks.watch(worker)
    const { url } = worker.spec
    const { runtimeType: runtime } = worker.entry
    log.info(
      { worker: url, id, runtime, ...(engine.length > 1 && { ranks: engine.length }) },
      'worker is ready',
    )
    for (const disagreement of pairDisagreements(worker, registry.workers()))
      log.warn({ worker: url, ...disagreement }, 'prefill and decode workers of one model disagree')
  }
}
