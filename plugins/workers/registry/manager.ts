/** Worker manager on control: accepts or rejects each change of a worker, and lists the workers. */
import { isDeepStrictEqual } from 'node:util'
import type { ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import { ModelInquiries } from './model-inquiries.ts'
import { toPendingRecord, toRecord } from './records.ts'
import type { Registrations } from './registrations.ts'
import type { Removals } from './removals.ts'
import type { AcceptedChange } from './thread-commands.ts'
import type { Discovery, WorkerList, WorkerQuery, WorkerRecord } from './wire.ts'
import type { Worker } from './worker.ts'
import { listWorkers } from './worker-list.ts'
import { type Origin, patchSpec, type Reservation, type WorkerPatch, type WorkerSpec } from './worker-spec.ts'
import { checkWorkerUrl, workerKey } from './worker-url.ts'
import { checkSupported } from './worker-validation.ts'

export class WorkerManager {
  readonly inquiries: ModelInquiries
  readonly #parts: ControlParts
  readonly #registrations: Registrations
  readonly #removals: Removals

  constructor(parts: ControlParts, registrations: Registrations, removals: Removals) {
    this.inquiries = new ModelInquiries(parts)
    this.#parts = parts
    this.#registrations = registrations
    this.#removals = removals
  }

  start(): void {
    this.#parts.loads.start()
  }

  /** Stops all background work. Idempotent. */
  stop(): void {
    this.#parts.jobs.stop()
    this.#parts.checks.stop()
    this.#parts.loads.stop()
    this.#parts.registry.pending.stop()
  }

  list(query: WorkerQuery): WorkerList {
    const { registry, balance, checks, loads } = this.#parts
    return listWorkers(
      {
        workers: registry.workers(),
        reservations: registry.reservations(),
        statusOf: (slot) => balance.status(slot),
        toRecord: (listed) =>
          'entry' in listed
            ? toRecord(listed, balance, {
                problem: checks.problemOf(listed),
                engine: loads.reportOf(listed.id),
              })
            : this.#pendingRecord(listed),
      },
      query,
    )
  }

  /**
   * Describes an engine without registering it.
   *
   * @throws as `register`, and discovery_failed
   */
  async discover(spec: WorkerSpec): Promise<Discovery> {
    const { controls } = this.#parts
    checkWorkerUrl(spec.url)
    checkSupported(controls, spec)
    const { runtimeType, connectionMode, models, labels, apis } = await this.#registrations.discover(spec)
    return {
      runtime_type: runtimeType,
      connection_mode: connectionMode,
      models,
      apis: [...(apis ?? [])],
      labels,
    }
  }

  /** @throws worker_not_found */
  get(id: string): WorkerRecord {
    const { registry, jobs, balance, checks, loads } = this.#parts
    const worker = registry.byId(id)
    if (worker !== undefined)
      return toRecord(worker, balance, {
        job: jobs.status(workerKey(worker.spec.url)),
        problem: checks.problemOf(worker),
        engine: loads.reportOf(id),
      })
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
    return this.#beginRegistration(spec, 'api')
  }

  /** Starts a registration, or an unfinished one again with the same id. */
  #beginRegistration(spec: WorkerSpec, origin: Origin): AcceptedChange {
    this.#registrations.cancel(spec.url)
    const reservation = this.#parts.registry.reserve(spec, origin)
    this.#registrations.begin(reservation)
    return accepted(reservation)
  }

  /** @throws as `register` */
  checkNew(spec: WorkerSpec): void {
    const { registry, controls, jobs, maxWorkers } = this.#parts
    const { url } = spec
    checkWorkerUrl(url)
    checkSupported(controls, spec)
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
    this.checkReplacement(id, spec)
    const pending = this.#parts.registry.reservationById(id)
    if (pending !== undefined) return this.#beginRegistration(spec, pending.origin)
    const worker = this.#require(id)
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
    const { registry, jobs } = this.#parts
    const pending = registry.reservationById(id)
    if (pending !== undefined) {
      jobs.requireRoom()
      return this.#beginRegistration(patchSpec(pending.spec, patch), pending.origin)
    }
    const worker = this.#require(id)
    this.#registrations.update(worker, (spec) => patchSpec(spec, patch))
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
    const { registry, controls } = this.#parts
    const worker = registry.byUrl(spec.url)
    if (worker === undefined) {
      checkWorkerUrl(spec.url)
      checkSupported(controls, spec)
      this.#beginRegistration(spec, origin)
    } else if (isReplaced) {
      this.#registrations.cancel(spec.url)
      this.#registrations.replace(worker, spec, true)
    } else this.#registrations.update(worker, () => spec, true)
  }

  /** Removes the worker of a URL as another gateway has accepted it. */
  drop(url: string): void {
    const known = this.#parts.registry.find(url)
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

  #require(id: string): Worker {
    const worker = this.#parts.registry.byId(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    return worker
  }
}

function accepted(worker: Worker | Reservation): AcceptedChange {
  return { id: worker.id, url: worker.spec.url }
}
