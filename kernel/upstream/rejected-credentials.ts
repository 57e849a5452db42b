/** Logs when a worker starts and stops rejecting the gateway's credentials. */
import type { Logger } from '../contracts/log.ts'
import type { WorkerEntry } from '../contracts/worker.ts'

/** Shortest time between two log lines about a worker that rejects only some requests, milliseconds. */
const MIN_REJECTING_MS = 60_000

const UNAUTHORIZED = 401
const FORBIDDEN = 403

/** True for statuses that reject a credential. gRPC statuses count by their HTTP status. */
export function isRejection(status: number): boolean {
  return status === UNAUTHORIZED || status === FORBIDDEN
}

const CREDENTIAL_NAME = /authorization|cookie|api-?key|token|secret/

/** @param header name of a request header, lower-case */
export function mayHoldCredential(header: string): boolean {
  return CREDENTIAL_NAME.test(header)
}

export class RejectedCredentials {
  readonly #log: Logger
  /** Time of the first rejection. A changed worker is a new entry and starts again. */
  readonly #sinceMs = new WeakMap<WorkerEntry, number>()

  constructor(log: Logger) {
    this.#log = log
  }

  rejected(worker: WorkerEntry, status: number): void {
    if (this.#sinceMs.has(worker)) return
    this.#sinceMs.set(worker, performance.now())
    this.#log.error(
      { worker: worker.url, status, has_api_key: worker.apiKey !== null },
      "worker rejects the gateway's credentials",
    )
  }

  accepted(worker: WorkerEntry): void {
    const sinceMs = this.#sinceMs.get(worker)
    if (sinceMs === undefined || performance.now() - sinceMs < MIN_REJECTING_MS) return
    this.#sinceMs.delete(worker)
    this.#log.info({ worker: worker.url }, "worker accepts the gateway's credentials again")
  }
}
