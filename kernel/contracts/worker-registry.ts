/** The worker registry contract: how a plugin that finds workers hands them to the one that looks after them. Control only. */

import { token } from './token.ts'
import type { WorkerStatus } from './worker.ts'

/** A worker, or the registration of one, that is on record. */
export interface KnownWorker {
  readonly id: string
  readonly url: string
  readonly labels: Readonly<Record<string, string>>
  /** `failed` is a registration that was given up: a registered worker that fails its probes is `not_ready`. */
  readonly status: WorkerStatus
}

export interface WorkerRegistryService {
  /**
   * Takes a registration on; it goes on in the background.
   * @param body as POST /workers takes it
   * @throws what POST /workers answers, such as invalid_field, worker_already_exists, job_queue_full
   */
  register(body: unknown): { readonly id: string; readonly url: string }
  /** Drains and removes; running requests may finish. @throws worker_not_found, job_queue_full */
  remove(id: string): void
  /** Undefined when nothing is on record under the id. */
  find(id: string): KnownWorker | undefined
  /** Registered workers; registrations under way are found by id only. */
  list(): readonly KnownWorker[]
}

export const WorkerRegistry = token<WorkerRegistryService>('worker-registry')
