/** The worker registry contract: registers workers found by other plugins. Control only. */

import { token } from './token.ts'
import type { WorkerStatus } from './worker.ts'

/** A registered worker, or a registration. */
export interface KnownWorker {
  readonly id: string
  readonly url: string
  readonly labels: Readonly<Record<string, string>>
  /** `failed`: the registration was given up. A registered worker that fails its probes is `not_ready`. */
  readonly status: WorkerStatus
}

export interface WorkerRegistryService {
  /**
   * Starts a registration, which continues in the background.
   * @param body as of POST /workers
   * @throws as POST /workers, such as invalid_field, worker_already_exists, job_queue_full
   */
  register(body: unknown): { readonly id: string; readonly url: string }
  /**
   * Describes a worker again with another specification; it keeps its id, and serves as before until that succeeds.
   * @param body as of PUT /workers/ID
   * @throws as PUT /workers/ID, such as replace_unsupported, job_queue_full
   */
  replace(id: string, body: unknown): void
  /** Drains and removes; running requests may finish. @throws worker_not_found, job_queue_full */
  remove(id: string): void
  /** Undefined for an unknown id. */
  find(id: string): KnownWorker | undefined
  /** Registered workers; running registrations are found by id only. */
  list(): readonly KnownWorker[]
}

export const WorkerRegistry = token<WorkerRegistryService>('worker-registry')
