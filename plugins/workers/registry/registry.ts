/** The workers that control knows: reserved ids, registered workers, and the table that all threads route by. */

import type { PendingWorkers, WorkerBalance, WorkerTable } from '#kernel'
import { uuidV7 } from '#shared'
import type { WorkersConfig } from './config.ts'
import { Publisher } from './publisher.ts'
import type { WorkerSpec } from './spec.ts'
import { buildWorker, type Findings, type Origin, type Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'

/** characters */
const MAX_PROBLEM = 300

/** A URL that has its id but is not registered. */
export interface Reservation {
  readonly id: string
  readonly spec: WorkerSpec
  readonly origin: Origin
}

export interface RegistryParts {
  readonly balance: Pick<WorkerBalance, 'allocateSlot' | 'freeSlot' | 'setStatus' | 'status'>
  readonly config: WorkersConfig
  /** Resolves when every thread routes by the table. */
  readonly publish: (table: WorkerTable) => Promise<void>
  /** Tells the threads about reserved workers; nobody waits for it. Default: nobody is told. */
  readonly publishPending?: (pending: PendingWorkers) => void
}

/** An engine to register: one worker, or one for each of its data-parallel ranks. */
export interface EngineParts {
  /** Of its workers, in order of their ranks; those that are missing are made. */
  readonly ids: readonly string[]
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
}

/**
 * Workers of one engine share its URL: they are registered, changed and removed together. Most engines have one
 * worker, those with data-parallel ranks one for each. URLs that differ in spelling only are one, see `workerKey`.
 */
export class Registry {
  readonly #parts: RegistryParts
  readonly #publisher: Publisher
  readonly #workers = new Map<string, Worker>()
  /** Ids of an engine's workers in order of their ranks, by key of its URL. */
  readonly #engines = new Map<string, readonly string[]>()
  readonly #reservations = new Map<string, Reservation>()
  readonly #reservedKey = new Map<string, string>()
  #inOrder: readonly Worker[] | null = null
  #problem: string | null = null

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#publisher = new Publisher(() =>
      parts.publish({ workers: this.workers().map((worker) => worker.entry) }),
    )
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

  /** All workers of a worker's engine in order of their ranks, itself included; none once it has been removed. */
  engineOf(worker: Worker): readonly Worker[] {
    return this.#workers.has(worker.id) ? this.#ofKey(workerKey(worker.spec.url)) : []
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

  /** Gives a URL its id; the same one again while it is not registered. */
  reserve(spec: WorkerSpec, origin: Origin = 'api'): Reservation {
    const key = workerKey(spec.url)
    const id = this.#reservations.get(key)?.id ?? uuidV7()
    const reservation = { id, spec, origin }
    this.#reservations.set(key, reservation)
    this.#reservedKey.set(id, key)
    this.#tellPending()
    return reservation
  }

  /** Why a reserved worker is not registered yet; clients read it, so its address is left out. */
  noteProblem(url: string, problem: string): void {
    this.#problem = problem.replaceAll(url, 'it').slice(0, MAX_PROBLEM)
    this.#tellPending()
  }

  #tellPending(): void {
    const count = this.#reservations.size
    if (count === 0) this.#problem = null
    this.#parts.publishPending?.({ count, problem: this.#problem })
  }

  /** Makes a registered engine a reservation with the same id again, as it was before `add`. */
  async takeBack(engine: readonly Worker[], reservation: Reservation): Promise<void> {
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
    this.#tellPending()
  }

  /**
   * Registers the workers of an engine in state pending and lets go of its reservation.
   * @returns them in order of their ranks, once every thread has them
   * @throws worker_limit (503) when there are not enough rows; nothing is registered then
   */
  async add(parts: EngineParts): Promise<readonly Worker[]> {
    const workers = this.#shape(parts, [])
    this.dropReservation(parts.spec.url)
    this.#keep(workers)
    await this.#publisher.publish()
    return workers
  }

  /**
   * Gives a registered engine another specification and findings. Its workers keep ids and rows; where it has more
   * ranks than before, workers are added, and where it has fewer, the last ones leave.
   * @throws worker_limit (503); nothing has changed then
   */
  async reshape(engine: readonly Worker[], spec: WorkerSpec, findings: Findings): Promise<readonly Worker[]> {
    const [{ origin }] = engine
    const workers = this.#shape({ ids: engine.map(({ id }) => id), spec, findings, origin }, engine)
    const left = engine.slice(workers.length)
    for (const { id, entry } of left) {
      this.#workers.delete(id)
      this.#parts.balance.setStatus(entry.slot, 'draining')
    }
    this.#keep(workers)
    await this.#publisher.publish()
    for (const { entry } of left) this.#parts.balance.freeSlot(entry.slot)
    return workers
  }

  /** Puts workers of one engine in the place of their former revisions. Visible here at once. */
  async put(workers: readonly Worker[]): Promise<void> {
    for (const worker of workers) this.#workers.set(worker.id, worker)
    this.#inOrder = null
    await this.#publisher.publish()
  }

  /** Takes an engine's workers out; their rows are free once no thread can pick them any more. */
  async remove(engine: readonly Worker[]): Promise<void> {
    const known = engine.filter(({ id }) => this.#workers.delete(id))
    if (known.length === 0) return
    this.#engines.delete(workerKey(known[0].spec.url))
    this.#inOrder = null
    await this.#publisher.publish()
    for (const { entry } of known) this.#parts.balance.freeSlot(entry.slot)
  }

  /** False when the worker was changed, is being removed, or is gone since that revision. */
  isCurrent(worker: Worker): boolean {
    const { slot, revision } = worker.entry
    const isSame = this.#workers.get(worker.id)?.entry.revision === revision
    return isSame && this.#parts.balance.status(slot) !== 'draining'
  }

  /** The worker as it is now; undefined also while it is being removed. */
  staying(id: string): Worker | undefined {
    const worker = this.#workers.get(id)
    return worker !== undefined && this.isCurrent(worker) ? worker : undefined
  }

  #ofKey(key: string): readonly Worker[] {
    const workers = (this.#engines.get(key) ?? []).map((id) => this.#workers.get(id))
    return workers.filter((worker) => worker !== undefined)
  }

  #keep(workers: readonly Worker[]): void {
    const [{ spec }] = workers
    for (const worker of workers) this.#workers.set(worker.id, worker)
    this.#engines.set(
      workerKey(spec.url),
      workers.map(({ id }) => id),
    )
    this.#inOrder = null
  }

  /** The workers that an engine is to have. @param known those it has, in order of their ranks */
  #shape({ ids, ...shared }: EngineParts, known: readonly Worker[]): Worker[] {
    const { rankCount } = shared.findings
    const slots = this.#allocate((rankCount ?? 1) - known.length)
    return Array.from({ length: rankCount ?? 1 }, (_, place) => {
      const parts = { ...shared, id: ids[place] ?? uuidV7(), rank: rankCount === undefined ? null : place }
      const { slot, revision } = known.at(place)?.entry ?? { slot: slots[place - known.length], revision: 0 }
      return buildWorker(parts, slot, revision + 1, this.#parts.config)
    })
  }

  /** All of them or none. */
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
