/** A control call to a worker, outside the hot path, and its buffered response. */
import type { HeaderList } from './transport.ts'

export interface WorkerCall {
  readonly method: string
  /** Appended to the worker's base URL. */
  readonly path: string
  readonly headers?: HeaderList
  readonly body?: string | Buffer
  /** Timeout of the whole call, milliseconds. */
  readonly timeoutMs: number
  /** Longer bodies fail the call. Default 16 MiB. */
  readonly maxBodyBytes?: number
}

/** A buffered response of a worker. */
export interface WorkerResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
  header(name: string): string | undefined
  /** @throws if the body is not JSON */
  json(): unknown
}
