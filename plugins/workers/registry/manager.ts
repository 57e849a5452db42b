/** Decides about workers, on control: takes each change on or refuses it, and tells what there is. */
import { isDeepStrictEqual } from 'node:util'
import type { WorkersConfig } from './config.ts'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { checkReach } from './controls.ts'
import { workerErrors } from './errors.ts'
import { serves } from './model-card.ts'
import { ModelInquiries } from './model-inquiries.ts'
import { toList, toPendingRecord, toRecord } from './records.ts'
import type { Registrations } from './registrations.ts'
import type { Reservation } from './registry.ts'
import type { Removals } from './removals.ts'
import { patchSpec, specOfUrl, toWorkerSpec, type WorkerPatch, type WorkerSpec } from './spec.ts'
import type { AcceptedChange } from './thread-commands.ts'
import type { WorkerList, WorkerRecord } from './wire.ts'
import { patchWorker, type Worker } from './worker.ts'
import { checkWorkerUrl, workerKey } from './worker-url.ts'

/** What the configuration says about workers by name. */
export type ConfiguredWorkers = Pick<WorkersConfig, 'urls' | 'workers'>

export class WorkerManager {
  /** What cloud services serve, once somebody needs it. */
  readonly inquiries: ModelInquiries
  readonly #parts: ControlParts
  readonly #registrations: Registrations
  readonly #removals: Removals
  /** By engine. */
  readonly #lastChanges = new Map<string, Promise<void>>()

  constructor(parts: ControlParts, registrations: Registrations, removals: Removals) {
    this.inquiries = new ModelInquiries(parts)
    this.#parts = parts
    this.#registrations = registrations
    this.#removals = removals
  }

  /** Lists the saved workers and registers those of the configuration; none of them is waited for. */
  async start(): Promise<void> {
    const { config, saved, registry, loads } = this.#parts
    const configured = specsOf(config)
    const keys = new Set(configured.map((spec) => workerKey(spec.url)))
    const restored = (await saved.load()).filter(([{ spec }]) => !keys.has(workerKey(spec.url)))
    const engines = await Promise.all(
      restored.map((workers) => {
        const [{ spec, findings }] = workers
        return registry.add({ ids: workers.map(({ id }) => id), spec, findings, origin: 'api' })
      }),
    )
    for (const [worker] of engines) this.#registrations.restore(worker)
    for (const spec of configured) this.#registrations.begin(registry.reserve(spec, 'config'))
    loads.start()
  }

  /**
   * The configuration names other workers: those that are new come, those that it named before and no longer names
   * leave, those that it describes otherwise are onboarded anew while they go on serving.
   *
   * @throws invalid_workers_config when dpAware is on and a worker is described otherwise
   */
  reconfigure(before: ConfiguredWorkers, after: ConfiguredWorkers): void {
    const { registry, config } = this.#parts
    const [old, next] = [specsByKey(before), specsByKey(after)]
    const changed = [...next].filter(([key, spec]) => old.has(key) && !isDeepStrictEqual(old.get(key), spec))
    if (config.dpAware && changed.length > 0) throw workerErrors.replace_unsupported()
    this.#registrations.trust(after.workers)
    for (const [key, { url }] of old) {
      const known = registry.byUrl(url) ?? registry.reservationOf(url)
      if (!next.has(key) && known !== undefined) this.remove(known.id)
    }
    for (const [, spec] of changed) {
      const known = registry.byUrl(spec.url) ?? registry.reservationOf(spec.url)
      if (known !== undefined) this.replace(known.id, { ...spec, url: known.spec.url })
    }
    for (const [key, spec] of next) {
      if (!old.has(key) && registry.byUrl(spec.url) === undefined)
        this.#registrations.begin(registry.reserve(spec, 'config'))
    }
  }

  /** Stops all background work. Safe to call twice. */
  stop(): void {
    this.#parts.jobs.stop()
    this.#parts.checks.stop()
    this.#parts.loads.stop()
  }

  /** @param model null lists all */
  list(model: string | null): WorkerList {
    const workers = this.#parts.registry.workers()
    const chosen = model === null ? workers : workers.filter(({ entry }) => serves(entry.models, model))
    const pending = this.#parts.registry
      .reservations()
      .filter(({ spec }) => model === null || serves(spec.models ?? [], model))
    return toList(
      chosen,
      this.#parts.balance,
      pending.map((one) => this.#pendingRecord(one)),
    )
  }

  /** False also while its registration is under way. */
  isRegistered(id: string): boolean {
    return this.#parts.registry.byId(id) !== undefined
  }

  /** @throws worker_not_found */
  get(id: string): WorkerRecord {
    const { registry, jobs, balance } = this.#parts
    const worker = registry.byId(id)
    if (worker !== undefined) return toRecord(worker, balance, jobs.status(workerKey(worker.spec.url)))
    const reservation = registry.reservationById(id)
    if (reservation === undefined) throw workerErrors.worker_not_found(id)
    return this.#pendingRecord(reservation)
  }

  #pendingRecord(reservation: Reservation): WorkerRecord {
    const { jobs, config, controls } = this.#parts
    const { url } = reservation.spec
    return toPendingRecord(reservation, config, jobs.status(workerKey(url)), controls.controlFor(url))
  }

  /**
   * Takes a registration on. While one of the same URL is under way the newest specification wins, with the same id.
   * @throws invalid_worker_url, invalid_field, transport_missing, worker_already_exists, worker_limit_reached,
   *   job_queue_full
   */
  register(spec: WorkerSpec): AcceptedChange {
    const { registry, jobs, maxWorkers } = this.#parts
    checkWorkerUrl(spec.url)
    checkReach(this.#parts.controls, spec)
    const existing = registry.byUrl(spec.url)
    if (existing !== undefined) throw workerErrors.worker_already_exists(existing.spec.url, existing.id)
    const known = registry.reservationOf(spec.url)
    const isUnderWay = known !== undefined && this.#registrations.isUnderWay(spec.url)
    if (isUnderWay && isDeepStrictEqual(known.spec, spec)) return accepted(known)
    if (known === undefined && registry.size >= maxWorkers)
      throw workerErrors.worker_limit_reached(maxWorkers)
    jobs.requireRoom()
    this.#registrations.cancel(spec.url)
    const reservation = registry.reserve(spec)
    this.#registrations.begin(reservation)
    return accepted(reservation)
  }

  /**
   * Takes a replacement on; it supersedes one that is still under way.
   * @throws worker_not_found, replace_unsupported, url_change_unsupported, job_queue_full
   */
  replace(id: string, spec: WorkerSpec): AcceptedChange {
    const pending = this.#parts.registry.reservationById(id)
    if (pending !== undefined) return this.#restart(pending, spec)
    const worker = this.#require(id)
    if (this.#parts.config.dpAware) throw workerErrors.replace_unsupported()
    if (spec.url !== worker.spec.url) {
      throw workerErrors.url_change_unsupported.with({ param: 'url' }, worker.spec.url)
    }
    checkReach(this.#parts.controls, spec)
    this.#parts.jobs.requireRoom()
    this.#registrations.cancel(spec.url)
    this.#registrations.replace(worker, spec)
    return accepted(worker)
  }

  /**
   * Takes a change of single members on; it holds for all workers of the engine.
   * @throws worker_not_found, job_queue_full
   */
  patch(id: string, patch: WorkerPatch): AcceptedChange {
    const pending = this.#parts.registry.reservationById(id)
    if (pending !== undefined) return this.#restart(pending, patchSpec(pending.spec, patch))
    const worker = this.#require(id)
    const url = workerKey(worker.spec.url)
    const options = { kind: 'UpdateWorker', url, budgetMs: BUDGET_MARGIN_MS } as const
    this.#parts.jobs.submit(options, () => this.#inTurn(url, () => this.#applyPatch(id, patch)))
    return accepted(worker)
  }

  /**
   * Takes a removal on, of all workers of the engine; of a registration that is not finished, cancels it. May be
   * repeated while it lasts.
   * @throws worker_not_found, job_queue_full
   */
  remove(id: string): AcceptedChange {
    const { registry, jobs } = this.#parts
    const reservation = registry.reservationById(id)
    if (reservation === undefined) {
      const worker = this.#require(id)
      this.#removals.begin(worker)
      return accepted(worker)
    }
    const { url } = reservation.spec
    this.#registrations.cancel(url)
    jobs.forget(workerKey(url))
    registry.dropReservation(url)
    return accepted(reservation)
  }

  /** Of a worker that is not registered yet: its registration begins anew, with the same id. */
  #restart({ spec: { url }, origin }: Reservation, spec: WorkerSpec): AcceptedChange {
    const { registry, jobs, controls } = this.#parts
    if (spec.url !== url) throw workerErrors.url_change_unsupported.with({ param: 'url' }, url)
    checkReach(controls, spec)
    jobs.requireRoom()
    this.#registrations.cancel(url)
    const reservation = registry.reserve(spec, origin)
    this.#registrations.begin(reservation)
    return accepted(reservation)
  }

  #require(id: string): Worker {
    const worker = this.#parts.registry.byId(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    return worker
  }

  /** Changes of an engine go one after the other: each begins with what the one before has left. */
  async #inTurn(engine: string, change: () => Promise<void>): Promise<void> {
    const before = this.#lastChanges.get(engine) ?? Promise.resolve()
    const run = before.then(change, change)
    this.#lastChanges.set(engine, run)
    try {
      await run
    } finally {
      if (this.#lastChanges.get(engine) === run) this.#lastChanges.delete(engine)
    }
  }

  async #applyPatch(id: string, patch: WorkerPatch): Promise<void> {
    const { registry, config, balance, checks, saved } = this.#parts
    const worker = this.#parts.registry.staying(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    if (Object.keys(patch).length === 0) return
    const engine = registry.engineOf(worker).map((member) => patchWorker(member, patch, config))
    // Saved first: what cannot be kept is not done.
    await saved.save(engine)
    if (registry.staying(id) === undefined) return
    await registry.put(engine)
    const [first] = engine
    if (!registry.isCurrent(first)) return
    if (first.health.isDisabled) for (const { entry } of engine) balance.setStatus(entry.slot, 'ready')
    checks.watch(first)
  }
}

function specsOf({ urls, workers }: ConfiguredWorkers): WorkerSpec[] {
  return [...urls.map(specOfUrl), ...workers.map(toWorkerSpec)]
}

function specsByKey(config: ConfiguredWorkers): Map<string, WorkerSpec> {
  return new Map(specsOf(config).map((spec) => [workerKey(spec.url), spec]))
}

function accepted(worker: Worker | Reservation): AcceptedChange {
  return { id: worker.id, url: worker.spec.url }
}
