/** A control call to a worker, outside the hot path, and its whole response. */
import type { HeaderList } from './transport.ts'

export interface WorkerCall {
  readonly method: string
  /** Appended to the worker's base URL. */
  readonly path: string
  readonly headers?: HeaderList
  readonly body?: string | Buffer
  /** For the whole call, in milliseconds. */
  readonly timeoutMs: number
  /** Longer bodies fail. Default 16 MiB. */
  readonly maxBodyBytes?: number
}

/** A whole answer of a worker. */
export interface WorkerReply {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
  header(name: string): string | undefined
  /** Those that may be sent on to a client: without hop-by-hop headers and those that the gateway writes itself. */
  clientHeaders(): HeaderList
  /** @throws when the body is not JSON */
  json(): unknown
}
