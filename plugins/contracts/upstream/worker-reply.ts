/** A call outside the hot path, and what it gets from a worker. */
import { type HeaderList, headerOf, toClientHeaders } from '#kernel'
import { parseBoundedJson } from '../formats/bounded-json.ts'

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

export function toWorkerReply(status: number, headers: HeaderList, body: Buffer): WorkerReply {
  return {
    status,
    headers,
    body,
    header: (name) => headerOf(headers, name),
    clientHeaders: () => toClientHeaders(headers),
    json: () => parseBoundedJson(body),
  }
}
