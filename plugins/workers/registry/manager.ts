/** Worker manager on control: accepts or rejects each change of a worker, and lists the workers. */
import { isDeepStrictEqual } from 'node:util'
import type { WorkersConfig } from './config.ts'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import { serves } from './model-card.ts'
import { ModelInquiries } from './model-inquiries.ts'
import { toList, toPendingRecord, toRecord } from './records.ts'
import type { Registrations } from './registrations.ts'
import type { Removals } from './removals.ts'
import type { AcceptedChange } from './thread-commands.ts'
import type { WorkerList, WorkerRecord } from './wire.ts'
import { respecifyWorker, type Worker } from './worker.ts'
import {
  type Origin,
  patchSpec,
  type Reservation,
  specOfUrl,
  toWorkerSpec,
  type WorkerPatch,
  type WorkerSpec,
} from './worker-spec.ts'
import { checkWorkerUrl, workerKey } from './worker-url.ts'
import { checkSupported } from './worker-validation.ts'

/** The workers that the configuration lists. */
export type ConfiguredWorkers = Pick<WorkersConfig, 'urls' | 'workers'>

export class WorkerManager {
  readonly inquiries: ModelInquiries
  readonly #parts: ControlParts
  readonly #registrations: Registrations
  readonly #removals: Removals
  /** Last change by engine. */
  readonly #lastChanges = new Map<string, Promise<void>>()

  constructor(parts: ControlParts, registrations: Registrations, removals: Removals) {
    this.inquiries = new ModelInquiries(parts)
    this.#parts = parts
    this.#registrations = registrations
    this.#removals = removals
  }

  /** Restores saved workers and starts to register those of the configuration. */
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
    registry.pending.setConfigured(configured.length)
    for (const [worker] of engines) this.#registrations.restore(worker)
    for (const spec of configured) this.#registrations.begin(registry.reserve(spec, 'config'))
    loads.start()
  }

  /**
   * What `reconfigure` would do to registered workers.
   * @throws replace_unsupported as `reconfigure` does
   */
  planReconfiguration(before: ConfiguredWorkers, after: ConfiguredWorkers): string[] {
    const { registry, balance, config } = this.#parts
    const [old, next] = [specsByKey(before), specsByKey(after)]
    const effects: string[] = []
    for (const [key, spec] of old) {
      const worker = registry.byUrl(spec.url)
      if (!next.has(key) && worker !== undefined) {
        const inFlight = registry
          .engineOf(worker)
          .reduce((sum, { entry }) => sum + balance.inFlight(entry.slot), 0)
        effects.push(`drains and removes worker ${worker.spec.url} (requests in flight: ${inFlight})`)
      } else if (next.has(key) && !isDeepStrictEqual(spec, next.get(key))) {
        if (config.dpAware) throw workerErrors.replace_unsupported()
        effects.push(`describes worker ${spec.url} again, which continues to serve`)
      }
    }
    for (const [key, { url }] of next) if (!old.has(key)) effects.push(`registers worker ${url}`)
    return effects
  }

  /**
   * Applies a reloaded configuration: registers new workers, removes those no longer listed, and describes changed ones
   * again while they continue to serve.
   *
   * @throws replace_unsupported if dpAware is on and the specification of a worker changed
   */
  reconfigure(before: ConfiguredWorkers, after: ConfiguredWorkers): void {
    const { registry, config } = this.#parts
    const [old, next] = [specsByKey(before), specsByKey(after)]
    const changed = [...next].filter(([key, spec]) => old.has(key) && !isDeepStrictEqual(old.get(key), spec))
    if (config.dpAware && changed.length > 0) throw workerErrors.replace_unsupported()
    this.#registrations.trust(after.workers)
    registry.pending.setConfigured(next.size)
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

  /** Stops all background work. Idempotent. */
  stop(): void {
    this.#parts.jobs.stop()
    this.#parts.checks.stop()
    this.#parts.loads.stop()
    this.#parts.registry.pending.stop()
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

  /** False while its registration is running. */
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
   * Accepts a registration. If one of the same URL is running, the newest specification wins and the id stays.
   * @throws invalid_worker_url, invalid_field, transport_missing, worker_already_exists, worker_limit_reached,
   *   job_queue_full
   */
  register(spec: WorkerSpec): AcceptedChange {
    const { registry } = this.#parts
    this.checkNew(spec)
    const known = registry.reservationOf(spec.url)
    const isRunning = known !== undefined && this.#registrations.isRunning(spec.url)
    if (isRunning) {
      const { configuredLabels: _, ...described } = known.spec
      if (isDeepStrictEqual(described, spec)) return accepted(known)
    }
    this.#registrations.cancel(spec.url)
    const reservation = registry.reserve(spec)
    this.#registrations.begin(reservation)
    return accepted(reservation)
  }

  /** @throws as `register` */
  checkNew({ url, ...rest }: WorkerSpec): void {
    const { registry, controls, jobs, maxWorkers } = this.#parts
    checkWorkerUrl(url)
    checkSupported(controls, { url, ...rest })
    const existing = registry.byUrl(url)
    if (existing !== undefined) throw workerErrors.worker_already_exists(existing.spec.url, existing.id)
    if (registry.reservationOf(url) === undefined && registry.size >= maxWorkers)
      throw workerErrors.worker_limit_reached(maxWorkers)
    jobs.requireRoom()
  }

  /**
   * Accepts a replacement; it supersedes one that is still running.
   * @throws worker_not_found, replace_unsupported, url_change_unsupported, job_queue_full
   */
  replace(id: string, spec: WorkerSpec): AcceptedChange {
    const pending = this.#parts.registry.reservationById(id)
    if (pending !== undefined) return this.#restartRegistration(pending, spec)
    const worker = this.#require(id)
    this.checkReplacement(id, spec)
    this.#registrations.cancel(spec.url)
    this.#registrations.replace(worker, spec)
    return accepted(worker)
  }

  /** @throws as `replace` */
  checkReplacement(id: string, spec: WorkerSpec): void {
    const { registry, controls, config, jobs } = this.#parts
    const pending = registry.reservationById(id)
    const { url } = pending?.spec ?? this.#require(id).spec
    if (pending === undefined && config.dpAware) throw workerErrors.replace_unsupported()
    if (spec.url !== url) throw workerErrors.url_change_unsupported.with({ param: 'url' }, url)
    checkSupported(controls, spec)
    jobs.requireRoom()
  }

  /**
   * Accepts a change of single members, which applies to all workers of the engine.
   * @throws worker_not_found, job_queue_full
   */
  patch(id: string, patch: WorkerPatch): AcceptedChange {
    const pending = this.#parts.registry.reservationById(id)
    if (pending !== undefined) return this.#restartRegistration(pending, patchSpec(pending.spec, patch))
    const worker = this.#require(id)
    const url = workerKey(worker.spec.url)
    const options = { kind: 'UpdateWorker', url, budgetMs: BUDGET_MARGIN_MS } as const
    this.#parts.jobs.submit(options, () =>
      this.#serialize(url, () => this.#respecify(id, (spec) => patchSpec(spec, patch))),
    )
    return accepted(worker)
  }

  /** Key of a worker or of an unfinished registration; undefined for an unknown id. */
  keyOf(id: string): string | undefined {
    const { registry } = this.#parts
    const known = registry.byId(id) ?? registry.reservationById(id)
    return known === undefined ? undefined : workerKey(known.spec.url)
  }

  /**
   * Registers or changes a worker as another gateway has accepted it.
   * @param isReplaced the worker is described again
   * @throws transport_missing, invalid_worker_url
   */
  adopt(spec: WorkerSpec, origin: Origin, isReplaced: boolean): void {
    const { registry, jobs, controls } = this.#parts
    const worker = registry.byUrl(spec.url)
    if (worker === undefined) {
      checkWorkerUrl(spec.url)
      checkSupported(controls, spec)
      this.#registrations.cancel(spec.url)
      this.#registrations.begin(registry.reserve(spec, origin))
    } else if (isReplaced) {
      this.#registrations.cancel(spec.url)
      this.#registrations.replace(worker, spec, true)
    } else {
      const url = workerKey(spec.url)
      const options = { kind: 'UpdateWorker', url, budgetMs: BUDGET_MARGIN_MS, isExempt: true } as const
      jobs.submit(options, () => this.#serialize(url, () => this.#respecify(worker.id, () => spec)))
    }
  }

  /** Removes the worker of a URL as another gateway has accepted it. */
  drop(url: string): void {
    const { registry } = this.#parts
    const known = registry.byUrl(url) ?? registry.reservationOf(url)
    if (known !== undefined) this.remove(known.id, true)
  }

  /**
   * Accepts the removal of all workers of an engine, or cancels an unfinished registration. Idempotent while it runs.
   * @throws worker_not_found, job_queue_full
   */
  remove(id: string, isExempt = false): AcceptedChange {
    const { registry, jobs } = this.#parts
    const reservation = registry.reservationById(id)
    if (reservation === undefined) {
      const worker = this.#require(id)
      this.#removals.begin(worker, isExempt)
      return accepted(worker)
    }
    const { url } = reservation.spec
    this.#registrations.cancel(url)
    jobs.forget(workerKey(url))
    registry.dropReservation(url)
    return accepted(reservation)
  }

  /** Starts an unfinished registration again, with the same id. */
  #restartRegistration({ spec: { url }, origin }: Reservation, spec: WorkerSpec): AcceptedChange {
    const { registry, jobs, controls } = this.#parts
    if (spec.url !== url) throw workerErrors.url_change_unsupported.with({ param: 'url' }, url)
    checkSupported(controls, spec)
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

  /** Runs changes of one engine one after the other, so that each starts from the result of the previous one. */
  async #serialize(engine: string, change: () => Promise<void>): Promise<void> {
    const before = this.#lastChanges.get(engine) ?? Promise.resolve()
    const run = before.then(change, change)
    this.#lastChanges.set(engine, run)
    try {
      await run
    } finally {
      if (this.#lastChanges.get(engine) === run) this.#lastChanges.delete(engine)
    }
  }

  async #respecify(id: string, next: (spec: WorkerSpec) => WorkerSpec): Promise<void> {
    const { registry, config, balance, checks, saved } = this.#parts
    const worker = this.#parts.registry.currentById(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    const spec = next(worker.spec)
    if (isDeepStrictEqual(spec, worker.spec)) return
    const engine = registry.engineOf(worker).map((member) => respecifyWorker(member, spec, config))
    // Saved first: a change that cannot be saved is not made.
    await saved.save(engine)
    if (registry.currentById(id) === undefined) return
    await registry.put(engine)
    const [first] = engine
    if (!registry.isCurrent(first)) return
    if (first.health.isDisabled) for (const { entry } of engine) balance.setStatus(entry.slot, 'ready')
    checks.watch(first)
  }
}

function specsOf({ urls, workers }: ConfiguredWorkers): WorkerSpec[] {
  const described = workers.map((wire) => {
    const spec = toWorkerSpec(wire)
    return { ...spec, configuredLabels: spec.labels }
  })
  return [...urls.map(specOfUrl), ...described]
}

function specsByKey(config: ConfiguredWorkers): Map<string, WorkerSpec> {
  return new Map(specsOf(config).map((spec) => [workerKey(spec.url), spec]))
}

function accepted(worker: Worker | Reservation): AcceptedChange {
  return { id: worker.id, url: worker.spec.url }
}
