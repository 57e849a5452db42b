/** Logs when a worker starts and stops answering in a way that only a correction of its settings can end. */
import type { Logger } from '../contracts/log.ts'
import type { WorkerEntry } from '../contracts/worker.ts'

/** Shortest time between two log lines about a worker that fails only some requests, milliseconds. */
const MIN_FAILING_MS = 60_000

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

/** Values are the log messages. */
const MESSAGES = {
  credentials: "worker rejects the gateway's credentials",
  stream: 'worker answers a stream request without a stream',
  page: 'worker answers requests with an HTML page',
  model: 'worker does not serve a model that it lists',
} as const

export type Misconfiguration = keyof typeof MESSAGES

export class MisconfiguredWorkers {
  readonly #log: Logger
  /** Time of the first such response. A changed worker is a new entry and starts again. */
  readonly #sinceMs = new WeakMap<WorkerEntry, number>()

  constructor(log: Logger) {
    this.#log = log
  }

  found(worker: WorkerEntry, fault: Misconfiguration, status: number, model: string): void {
    if (this.#sinceMs.has(worker)) return
    this.#sinceMs.set(worker, performance.now())
    const fields = { worker: worker.url, status, model, has_api_key: worker.apiKey !== null }
    if (fault === 'credentials') this.#log.error(fields, MESSAGES[fault])
    else this.#log.warn(fields, MESSAGES[fault])
  }

  /** Called for each request that the worker answered as expected. */
  working(worker: WorkerEntry): void {
    const sinceMs = this.#sinceMs.get(worker)
    if (sinceMs === undefined || performance.now() - sinceMs < MIN_FAILING_MS) return
    this.#sinceMs.delete(worker)
    this.#log.info({ worker: worker.url }, 'worker answers as configured again')
  }
}
