/** A worker's whole answer as plugins read it. */
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerReply } from '../contracts/worker-reply.ts'
import { parseBoundedJson } from '../wire/bounded-json.ts'
import { headerOf, toClientHeaders } from './response-headers.ts'

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
