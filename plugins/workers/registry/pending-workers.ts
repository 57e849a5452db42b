/** Publishes what all threads know of reserved workers: how many there are, and which models they may serve. */
import type { PendingWorkers } from '#kernel'
import { namesOf, toCards } from './model-card.ts'
import { Publisher } from './publisher.ts'
import type { Reservation } from './worker-spec.ts'

const MAX_PROBLEM_LENGTH = 300

export interface PendingWorkersParts {
  /** Alias → model id. */
  readonly modelAliases: Readonly<Record<string, string>>
  /** Time from the reservation of a worker for which it may serve any model, milliseconds. */
  readonly discoveryMs: number
  readonly reservations: () => readonly Reservation[]
  /** Must not reject. */
  readonly publish: (pending: PendingWorkers) => Promise<void>
}

export class PendingWorkersPublisher {
  readonly #parts: PendingWorkersParts
  readonly #publisher: Publisher
  /** Reservations that became workers, until every thread has the new table. */
  readonly #joining = new Set<Reservation>()
  #problem: string | null = null
  #configured = 0
  /** Ends the discovery of the newest reservation. */
  #discoveryEnd: NodeJS.Timeout | undefined

  constructor(parts: PendingWorkersParts) {
    this.#parts = parts
    this.#publisher = new Publisher(async () => {
      // Reservations of the same turn of the event loop are published together.
      await Promise.resolve()
      await parts.publish(this.#read())
    })
  }

  /** Publishes the present state; resolves when every thread has it. */
  publish(): Promise<void> {
    return this.#publisher.publish()
  }

  /** @param count workers that the configuration lists */
  setConfigured(count: number): void {
    this.#configured = count
    void this.publish()
  }

  /** Records why a worker is not registered yet. Clients see the text, so the worker's URL is removed. */
  noteProblem(url: string, problem: string): void {
    this.#problem = problem.replaceAll(url, 'it').slice(0, MAX_PROBLEM_LENGTH)
    void this.publish()
  }

  /** Counts a reservation that is being replaced by its workers as pending until they are published. */
  async whileJoining(reservation: Reservation, publishWorkers: () => Promise<void>): Promise<void> {
    this.#joining.add(reservation)
    try {
      await publishWorkers()
    } finally {
      this.#joining.delete(reservation)
    }
    await this.publish()
  }

  stop(): void {
    clearTimeout(this.#discoveryEnd)
  }

  #read(): PendingWorkers {
    const pending = [...this.#parts.reservations(), ...this.#joining]
    if (pending.length === 0) this.#problem = null
    const endsInMs = this.#discoveryEndsInMs(pending)
    clearTimeout(this.#discoveryEnd)
    if (endsInMs > 0) this.#discoveryEnd = setTimeout(() => void this.publish(), endsInMs).unref()
    const cards = pending.flatMap(({ spec }) => toCards(spec.models ?? [], this.#parts.modelAliases))
    return {
      count: pending.length,
      problem: this.#problem,
      models: [...new Set(namesOf(cards))],
      isDiscovering: endsInMs > 0,
      configured: this.#configured,
      configuredPending: pending.filter(({ origin }) => origin === 'config').length,
    }
  }

  /** Milliseconds until no reserved worker may serve any model; 0 or less if none may. */
  #discoveryEndsInMs(pending: readonly Reservation[]): number {
    const reserved = pending
      .filter(({ spec }) => (spec.models ?? []).length === 0)
      .map(({ reservedAtMs }) => reservedAtMs)
    return Math.ceil(Math.max(...reserved) + this.#parts.discoveryMs - performance.now())
  }
}
