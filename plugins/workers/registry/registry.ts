/** Registered workers and reserved ids on control, and the worker table that all threads route by. */
import type { PendingWorkers, WorkerBalance, WorkerTable } from '#kernel'
import { uuidV7 } from '#shared'
import type { WorkersConfig } from './config.ts'
import { PendingWorkersPublisher } from './pending-workers.ts'
import { Publisher } from './publisher.ts'
import { buildWorker, type Findings, type Worker } from './worker.ts'
import type { Origin, Reservation, WorkerSpec } from './worker-spec.ts'
import { workerKey } from './worker-url.ts'

export interface RegistryParts {
  readonly balance: Pick<WorkerBalance, 'allocateSlot' | 'freeSlot' | 'setStatus' | 'status'>
  readonly config: WorkersConfig
  /** Resolves when every thread routes by the table. */
  readonly publish: (table: WorkerTable) => Promise<void>
  /** Publishes what is known of reserved workers. Must not reject. */
  readonly publishPending?: (pending: PendingWorkers) => Promise<void>
  /**
   * Id of the worker of a URL, and of each further rank of its engine, if gateways must agree on it. Default: a new one,
   * which sorts by time of registration.
   */
  readonly idOf?: (key: string, rank: number) => string
  /** Time from the reservation of a worker for which it may serve any model, milliseconds. Default 0. */
  readonly discoveryMs?: number
}

/** An engine to register: one worker, or one for each of its data-parallel ranks. */
export interface EngineParts {
  /** Ids of its workers in order of their ranks; missing ones are created. */
  readonly ids: readonly string[]
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
}

/**
 * Workers of one engine share its URL: they are registered, changed and removed together. An engine has one worker, or
 * one for each data-parallel rank. URLs are compared in the normal form of `workerKey`.
 */
export class Registry {
  readonly pending: PendingWorkersPublisher
  readonly #parts: RegistryParts
  readonly #publisher: Publisher
  readonly #workers = new Map<string, Worker>()
  /** Ids of an engine's workers in order of their ranks, by key of its URL. */
  readonly #engines = new Map<string, readonly string[]>()
  readonly #reservations = new Map<string, Reservation>()
  /** Key by id, since discovery asks for thousands of reservations at once. */
  readonly #reservedKey = new Map<string, string>()
  #inOrder: readonly Worker[] | null = null

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#publisher = new Publisher(() =>
      parts.publish({ workers: this.workers().map((worker) => worker.entry) }),
    )
    this.pending = new PendingWorkersPublisher({
      modelAliases: parts.config.modelAliases,
      discoveryMs: parts.discoveryMs ?? 0,
      reservations: () => this.reservations(),
      publish: async (pending) => parts.publishPending?.(pending),
    })
  }

  /** Registered workers in order of registration, which is the order of their ids. */
  workers(): readonly Worker[] {
    this.#inOrder ??= [...this.#workers.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    return this.#inOrder
  }

  /** Registered and reserved. */
  get size(): number {
    return this.#workers.size + this.#reservations.size
  }

  byId(id: string): Worker | undefined {
    return this.#workers.get(id)
  }

  byUrl(url: string): Worker | undefined {
    return this.#ofKey(workerKey(url)).at(0)
  }

  /** All workers of a worker's engine in order of their ranks, itself included; empty after its removal. */
  engineOf(worker: Worker): readonly Worker[] {
    return this.#workers.has(worker.id) ? this.#ofKey(workerKey(worker.spec.url)) : []
  }

  /** The first worker of a URL's engine, or its reservation. */
  find(url: string): Worker | Reservation | undefined {
    return this.byUrl(url) ?? this.reservationOf(url)
  }

  reservationOf(url: string): Reservation | undefined {
    return this.#reservations.get(workerKey(url))
  }

  /** In order of their first registration. */
  reservations(): readonly Reservation[] {
    return [...this.#reservations.values()]
  }

  reservationById(id: string): Reservation | undefined {
    const key = this.#reservedKey.get(id)
    return key === undefined ? undefined : this.#reservations.get(key)
  }

  /** Reserves an id for a URL; returns the same id until the worker is registered. */
  reserve(spec: WorkerSpec, origin: Origin = 'api'): Reservation {
    const key = workerKey(spec.url)
    const id = this.#reservations.get(key)?.id ?? this.#newId(key, 0)
    const reservation = { id, spec, origin, reservedAtMs: performance.now() }
    this.#reservations.set(key, reservation)
    this.#reservedKey.set(id, key)
    void this.pending.publish()
    return reservation
  }

  /** Undoes `add`: the engine becomes a reservation with the same id again. */
  async revertToReservation(engine: readonly Worker[], reservation: Reservation): Promise<void> {
    await this.remove(engine)
    const key = workerKey(reservation.spec.url)
    if (this.#reservations.has(key)) return
    this.#reservations.set(key, reservation)
    this.#reservedKey.set(reservation.id, key)
  }

  dropReservation(url: string): void {
    const key = workerKey(url)
    const reservation = this.#reservations.get(key)
    if (reservation === undefined) return
    this.#reservations.delete(key)
    this.#reservedKey.delete(reservation.id)
    void this.pending.publish()
  }

  /**
   * Registers the workers of an engine with status pending and drops its reservation.
   * @returns the workers in order of their ranks, once every thread has them
   * @throws worker_limit (503) if there are not enough slots; nothing is registered then
   */
  async add(parts: EngineParts): Promise<readonly Worker[]> {
    const workers = this.#buildWorkers(parts, [])
    const reservation = this.reservationOf(parts.spec.url)
    this.dropReservation(parts.spec.url)
    this.#store(workers)
    const publish = () => this.#publisher.publish()
    if (reservation === undefined) await publish()
    else await this.pending.whileJoining(reservation, publish)
    return workers
  }

  /**
   * Replaces the specification and findings of a registered engine. Its workers keep their ids and slots; if the
   * number of ranks changes, workers are added or the last ones removed.
   * @throws worker_limit (503); nothing has changed then
   */
  async redescribe(
    engine: readonly Worker[],
    spec: WorkerSpec,
    findings: Findings,
  ): Promise<readonly Worker[]> {
    const [{ origin }] = engine
    const workers = this.#buildWorkers({ ids: engine.map(({ id }) => id), spec, findings, origin }, engine)
    const left = engine.slice(workers.length)
    for (const { id, entry } of left) {
      this.#workers.delete(id)
      this.#parts.balance.setStatus(entry.slot, 'draining')
    }
    this.#store(workers)
    await this.#publisher.publish()
    for (const { entry } of left) this.#parts.balance.freeSlot(entry.slot)
    return workers
  }

  /** Replaces the workers of one engine by their next revisions, on this thread immediately. */
  async put(workers: readonly Worker[]): Promise<void> {
    for (const worker of workers) this.#workers.set(worker.id, worker)
    this.#inOrder = null
    await this.#publisher.publish()
  }

  /** Removes an engine's workers; their slots are freed once no thread can pick them any more. */
  async remove(engine: readonly Worker[]): Promise<void> {
    const known = engine.filter(({ id }) => this.#workers.delete(id))
    if (known.length === 0) return
    this.#engines.delete(workerKey(known[0].spec.url))
    this.#inOrder = null
    await this.#publisher.publish()
    for (const { entry } of known) this.#parts.balance.freeSlot(entry.slot)
  }

  /** False if the worker was changed or removed since that revision, or is being removed. */
  isCurrent(worker: Worker): boolean {
    const { slot, revision } = worker.entry
    const isSame = this.#workers.get(worker.id)?.entry.revision === revision
    return isSame && this.#parts.balance.status(slot) !== 'draining'
  }

  /** The current revision of a worker; undefined also while it is being removed. */
  currentById(id: string): Worker | undefined {
    const worker = this.#workers.get(id)
    return worker !== undefined && this.isCurrent(worker) ? worker : undefined
  }

  #newId(key: string, rank: number): string {
    return this.#parts.idOf?.(key, rank) ?? uuidV7()
  }

  #ofKey(key: string): readonly Worker[] {
    const workers = (this.#engines.get(key) ?? []).map((id) => this.#workers.get(id))
    return workers.filter((worker) => worker !== undefined)
  }

  #store(workers: readonly Worker[]): void {
    const [{ spec }] = workers
    for (const worker of workers) this.#workers.set(worker.id, worker)
    this.#engines.set(
      workerKey(spec.url),
      workers.map(({ id }) => id),
    )
    this.#inOrder = null
  }

  /** Builds the workers of an engine. @param known its present workers in order of their ranks */
  #buildWorkers({ ids, ...shared }: EngineParts, known: readonly Worker[]): Worker[] {
    const { rankCount } = shared.findings
    const slots = this.#allocate((rankCount ?? 1) - known.length)
    return Array.from({ length: rankCount ?? 1 }, (_, place) => {
      const id = ids[place] ?? this.#newId(workerKey(shared.spec.url), place)
      const parts = { ...shared, id, rank: rankCount === undefined ? null : place }
      const { slot, revision } = known.at(place)?.entry ?? { slot: slots[place - known.length], revision: 0 }
      return buildWorker(parts, slot, revision + 1, this.#parts.config)
    })
  }

  /** Allocates all slots or none. */
  #allocate(count: number): number[] {
    const { balance } = this.#parts
    const slots: number[] = []
    try {
      while (slots.length < count) slots.push(balance.allocateSlot())
    } catch (error) {
      for (const slot of slots) balance.freeSlot(slot)
      throw error
    }
    for (const slot of slots) balance.setStatus(slot, 'pending')
    return slots
  }
}
