/** What a call outside the hot path gets from a worker. */
import type { HeaderList } from './transport.ts'

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
