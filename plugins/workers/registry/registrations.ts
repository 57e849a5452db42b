/**
 * Registers and changes workers in the background: describes the engine, adds it to the table, saves it and makes it ready.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type DescribeTools, messageOf } from '#kernel'
import { SerialByKey } from '#shared'
import type { WorkersConfig } from './config.ts'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import type { JobContext, JobOptions } from './jobs.ts'
import { serves, toCards } from './model-card.ts'
import { type Findings, healthyStatus, isHealthy, respecifyWorker, type Worker } from './worker.ts'
import {
  effectiveHealth,
  type Origin,
  type Reservation,
  toDescribeTarget,
  type WorkerSpec,
} from './worker-spec.ts'
import { workerKey } from './worker-url.ts'
import { requireControl } from './worker-validation.ts'

/** Time for which an operator waits. */
const DISCOVERY_MS = 10_000
/** Interval between attempts to register a worker of the configuration. */
const FIRST_PAUSE_MS = 30_000
const MAX_PAUSE_MS = 600_000

export class Registrations {
  readonly #parts: ControlParts
  /** Each update of an engine starts from the result of the previous one. */
  readonly #updates = new SerialByKey()
  #configured: WorkersConfig['workers']

  constructor(parts: ControlParts) {
    this.#parts = parts
    this.#configured = parts.config.workers
  }

  /** @param configured workers of the reloaded configuration */
  trust(configured: WorkersConfig['workers']): void {
    this.#configured = configured
  }

  /** Registers a reserved worker. @throws job_queue_full, except for workers of the configuration and of the mesh */
  begin(reservation: Reservation): void {
    const { id, spec, origin } = reservation
    const isPersistent = origin !== 'api'
    this.#submit(
      spec.url,
      isPersistent,
      async (job) => {
        const findings = await this.#describe(reservation, job)
        const { registry, saved } = this.#parts
        await registry.add({ ids: [id], spec, findings, origin })
        const worker = registry.currentById(id)
        // Removed meanwhile: saving it now would restore it after a restart.
        if (worker === undefined) return
        const engine = registry.engineOf(worker)
        // It gets no requests before it is saved, so that a failed save can be undone.
        await saved.save(engine).catch(async (error: unknown) => {
          if (registry.currentById(id) !== undefined) await registry.revertToReservation(engine, reservation)
          throw error
        })
        this.#activate(id)
        this.#parts.onRegistered?.(spec.url)
      },
      isPersistent,
    )
  }

  /** Retries workers of the configuration and of the mesh without end, since they may start at any time. */
  async #describe(reservation: Reservation, job: JobContext): Promise<Findings> {
    const { spec, origin } = reservation
    const noted: JobContext = {
      ...job,
      note: (problem) => {
        job.note(problem)
        this.#parts.registry.pending.noteProblem(spec.url, problem)
      },
    }
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      try {
        const findings = await describeWorker(spec, this.#trustOf(spec, origin), noted, this.#parts)
        job.signal.throwIfAborted()
        return findings
      } catch (error) {
        if (origin === 'api' || job.signal.aborted) throw error
        noted.note(messageOf(error))
        await job.wait(pauseMs)
      }
    }
  }

  /** Describes a registered worker again; the old one serves until that succeeds. @throws job_queue_full */
  replace(worker: Worker, spec: WorkerSpec, isExempt = false): void {
    this.#submit(spec.url, isExempt, (job) => this.#describeAgain(worker, spec, job, false))
  }

  /** Describes a saved worker again, since its engine may have changed during the restart. */
  restore(worker: Worker): void {
    this.#submit(worker.spec.url, true, async (job) => {
      try {
        await this.#describeAgain(worker, worker.spec, job, true)
      } catch (error) {
        if (this.#parts.registry.isCurrent(worker)) this.#parts.checks.watch(worker)
        throw error
      }
    })
  }

  /** Describes a worker again whose engine has changed, unless that is running. */
  refresh(worker: Worker): void {
    if (this.isRunning(worker.spec.url)) return
    this.#parts.log.warn({ worker: worker.spec.url }, 'engine changed, describing its worker again')
    this.restore(worker)
  }

  /**
   * Changes the specification of all workers of an engine without describing it again.
   * @param change of the specification at the time of the change
   * @param isExempt not subject to the queue limit: another gateway has accepted the change
   * @throws job_queue_full
   */
  update({ id, spec }: Worker, change: (spec: WorkerSpec) => WorkerSpec, isExempt = false): void {
    const url = workerKey(spec.url)
    const options = { kind: 'UpdateWorker', url, budgetMs: BUDGET_MARGIN_MS, isExempt } as const
    this.#parts.jobs.submit(options, () => this.#updates.run(url, () => this.#respecify(id, change)))
  }

  async #respecify(id: string, change: (spec: WorkerSpec) => WorkerSpec): Promise<void> {
    const { registry, config, balance, checks, saved } = this.#parts
    const worker = registry.currentById(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    const spec = change(worker.spec)
    if (isDeepStrictEqual(spec, worker.spec)) return
    const engine = registry.engineOf(worker).map((member) => respecifyWorker(member, spec, config))
    // Saved first: a change that cannot be saved is not made.
    await saved.save(engine)
    if (registry.currentById(id) === undefined) return
    await registry.put(engine)
    const [first] = engine
    if (!registry.isCurrent(first)) return
    for (const { entry } of engine)
      if (first.health.isDisabled || isHealthy(balance.status(entry.slot)))
        balance.setStatus(entry.slot, healthyStatus(first))
    checks.watch(first)
  }

  /** Describes an engine that is not registered, and does not wait for one that is down. @throws discovery_failed */
  async discover(spec: WorkerSpec): Promise<Findings> {
    const signal = AbortSignal.timeout(DISCOVERY_MS)
    let problem: string | null = null
    const job: JobContext = {
      signal,
      note: (blocked) => {
        problem = blocked
      },
      // It would be asked again afterwards.
      wait: async (waitMs) => {
        if (problem !== null) throw new Error(problem)
        await delay(waitMs, undefined, { signal })
      },
    }
    const parts = { ...this.#parts, config: { ...this.#parts.config, startupDelaySecs: 0 } }
    return describeWorker(spec, 'api', job, parts).catch((error: unknown) => {
      const silence = problem ?? `no response within ${DISCOVERY_MS} ms`
      throw workerErrors.discovery_failed.with(
        { cause: error },
        spec.url,
        signal.aborted ? silence : messageOf(error),
      )
    })
  }

  isRunning(url: string): boolean {
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
   * @param isSaved already saved with this specification, so that a failed save does not undo the change
   * @throws worker_not_saved, worker_changed if another change came first
   */
  async #describeAgain(seen: Worker, spec: WorkerSpec, job: JobContext, isSaved: boolean): Promise<void> {
    const { registry, loads, saved, log } = this.#parts
    const findings = await describeWorker(spec, this.#trustOf(spec, seen.origin), job, this.#parts)
    job.signal.throwIfAborted()
    if (!registry.isCurrent(seen)) throw workerErrors.worker_changed()
    const before = registry.engineOf(seen)
    const left = before.slice(findings.rankCount ?? 1)
    await loads.forget(left)
    if (!registry.isCurrent(seen)) throw workerErrors.worker_changed()
    await registry.redescribe(before, spec, findings)
    const worker = registry.currentById(seen.id)
    // Removed meanwhile.
    if (worker === undefined) return
    const after = registry.engineOf(worker)
    await saved.save(after).catch(async (error: unknown) => {
      if (isSaved) {
        log.error({ worker: spec.url, err: error }, 'worker discovery results not saved')
        return
      }
      // Removed ranks cannot get their ids back; with the same number of ranks the change can be undone.
      if (left.length === 0 && registry.isCurrent(worker))
        await registry.redescribe(after, seen.spec, seen.findings)
      throw error
    })
    await saved
      .drop(left)
      .catch((err: unknown) => log.error({ worker: spec.url, err }, 'removed ranks not deleted from storage'))
    this.#activate(seen.id)
  }

  /** Replacing a worker of the configuration must not change its provider, which decides which admin key it gets. */
  #trustOf(spec: WorkerSpec, origin: Origin): Origin {
    const key = workerKey(spec.url)
    const configured = this.#configured.find(({ url }) => workerKey(url) === key)
    return (configured?.provider ?? undefined) === spec.carried.provider ? origin : 'api'
  }

  /**
   * Marks all workers of the engine as healthy: the engine has just answered. Does nothing if the worker was removed
   * while the table was published.
   */
  #activate(id: string): void {
    const { registry, balance, checks, log } = this.#parts
    const worker = registry.currentById(id)
    if (worker === undefined) return
    const engine = registry.engineOf(worker)
    for (const { entry } of engine) balance.setStatus(entry.slot, healthyStatus(worker))
    checks.watch(worker)
    const { url } = worker.spec
    const { runtimeType: runtime } = worker.entry
    log.info({ worker: url, id, runtime, ...(engine.length > 1 && { ranks: engine.length }) }, 'worker ready')
    for (const disagreement of pairDisagreements(worker, registry.workers()))
      log.warn({ worker: url, ...disagreement }, 'prefill and decode workers of one model differ')
  }
}

/**
 * Waits `startupDelaySecs`, then lets the connection mode of the worker describe it.
 *
 * @throws transport_missing if no plugin supports the URL scheme, and the errors of `WorkerControl.describe`
 */
async function describeWorker(
  spec: WorkerSpec,
  origin: Origin,
  job: JobContext,
  { controls, config, log }: Pick<ControlParts, 'controls' | 'config' | 'log'>,
): Promise<Findings> {
  if (config.startupDelaySecs > 0) await job.wait(config.startupDelaySecs * 1000)
  const control = requireControl(controls, spec.url)
  const target = toDescribeTarget(spec, origin)
  const health = effectiveHealth(spec.health, config, control.isExternal(target))
  const tools: DescribeTools = {
    ...job,
    log,
    health: health.isDisabled ? null : { path: config.health.endpoint, timeoutMs: health.timeoutSecs * 1000 },
    startupTimeoutMs: config.startupTimeoutSecs * 1000,
    checkIntervalMs: config.startupCheckIntervalSecs * 1000,
    expandsRanks: config.dpAware,
    serviceKeys: new Map(Object.entries(config.adminKeys)),
  }
  const found = await control.describe(target, tools)
  const models = toCards(found.models, config.modelAliases)
  return { ...found, connectionMode: control.mode, models }
}

/** Labels that should have the same value on the prefill and decode workers of a model. */
const SHARED_LABELS = ['tp_size', 'dp_size', 'load_balance_method'] as const

/**
 * Labels in which a worker and its possible partners differ, each once with the URL of the first such partner. A missing label
 * counts as equal.
 */
export function pairDisagreements(worker: Worker, all: readonly Worker[]) {
  const { workerType } = worker.entry
  if (workerType === 'regular') return []
  const partnerType = workerType === 'prefill' ? 'decode' : 'prefill'
  const partners = all.filter((other) => other.entry.workerType === partnerType && sharesModel(worker, other))
  return SHARED_LABELS.flatMap((label) => {
    const value = worker.entry.labels[label]
    const peer = partners.find(({ entry }) => (entry.labels[label] ?? value) !== value)
    if (value === undefined || peer === undefined) return []
    return [{ label, value, peer: peer.entry.url, peerValue: peer.entry.labels[label] }]
  })
}

function sharesModel(worker: Worker, other: Worker): boolean {
  const { models } = worker.entry
  return models.length === 0 || models.some((card) => serves(other.entry.models, card.id))
}
