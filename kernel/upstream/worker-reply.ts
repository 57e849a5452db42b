/** A worker's whole answer as plugins read it. */
import type { HeaderList } from '../contracts/transport.ts'
import { toClientHeaders } from './response-headers.ts'
import type { WorkerReply } from './upstream.ts'

export function toWorkerReply(status: number, headers: HeaderList, body: Buffer): WorkerReply {
  return {
    status,
    headers,
    body,
    header(name) {
      for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
      return undefined
    },
    clientHeaders: () => toClientHeaders(headers),
    json: () => JSON.parse(body.toString('utf8')) as unknown,
  }
}
