/** The workers that control knows: reserved ids, registered workers, and the table that all threads route by. */
import type { WorkerBalance, WorkerTable } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { Publisher } from './publisher.ts'
import type { WorkerSpec } from './spec.ts'
import { uuidV7 } from './uuid-v7.ts'
import { buildWorker, type Worker, type WorkerParts } from './worker.ts'

/** A URL that has its id but is not registered. */
export interface Reservation {
  readonly id: string
  readonly spec: WorkerSpec
}

export interface RegistryParts {
  readonly balance: Pick<WorkerBalance, 'allocateSlot' | 'freeSlot' | 'setStatus' | 'status'>
  readonly config: WorkersConfig
  /** Resolves when every thread routes by the table. */
  readonly publish: (table: WorkerTable) => Promise<void>
}

export class Registry {
  readonly #parts: RegistryParts
  readonly #publisher: Publisher
  readonly #workers = new Map<string, Worker>()
  readonly #idOfUrl = new Map<string, string>()
  readonly #reservations = new Map<string, Reservation>()
  readonly #reservedUrl = new Map<string, string>()
  #inOrder: readonly Worker[] | null = null

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
    const id = this.#idOfUrl.get(url)
    return id === undefined ? undefined : this.#workers.get(id)
  }

  reservationOf(url: string): Reservation | undefined {
    return this.#reservations.get(url)
  }

  reservationById(id: string): Reservation | undefined {
    const url = this.#reservedUrl.get(id)
    return url === undefined ? undefined : this.#reservations.get(url)
  }

  /** Gives a URL its id; the same one again while it is not registered. @source routes facts 16.4 */
  reserve(spec: WorkerSpec): Reservation {
    const id = this.#reservations.get(spec.url)?.id ?? uuidV7()
    const reservation = { id, spec }
    this.#reservations.set(spec.url, reservation)
    this.#reservedUrl.set(id, spec.url)
    return reservation
  }

  dropReservation(url: string): void {
    const reservation = this.#reservations.get(url)
    if (reservation === undefined) return
    this.#reservations.delete(url)
    this.#reservedUrl.delete(reservation.id)
  }

  /**
   * Registers a worker in state pending and lets go of its reservation.
   * @returns the worker, once every thread has it
   * @throws worker_limit (503) when every row is taken
   */
  async add(parts: WorkerParts): Promise<Worker> {
    const slot = this.#parts.balance.allocateSlot()
    this.#parts.balance.setStatus(slot, 'pending')
    const worker = buildWorker(parts, slot, 1, this.#parts.config)
    this.dropReservation(parts.spec.url)
    await this.put(worker)
    return worker
  }

  /** Puts a worker in the place of its former revision, or in its own. Visible here at once. */
  async put(worker: Worker): Promise<void> {
    this.#workers.set(worker.id, worker)
    this.#idOfUrl.set(worker.spec.url, worker.id)
    this.#inOrder = null
    await this.#publisher.publish()
  }

  /** Takes a worker out; its row is free once no thread can pick it any more. */
  async remove(id: string): Promise<void> {
    const worker = this.#workers.get(id)
    if (worker === undefined) return
    this.#workers.delete(id)
    this.#idOfUrl.delete(worker.spec.url)
    this.#inOrder = null
    await this.#publisher.publish()
    this.#parts.balance.freeSlot(worker.entry.slot)
  }

  /** False when the worker was changed, is being removed, or is gone since that revision. */
  isCurrent(worker: Worker): boolean {
    const { slot, revision } = worker.entry
    const isSame = this.#workers.get(worker.id)?.entry.revision === revision
    return isSame && this.#parts.balance.status(slot) !== 'draining'
  }
}
