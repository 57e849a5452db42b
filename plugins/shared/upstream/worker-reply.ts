/** Makes the response of a control call from its parts. */
import { type HeaderList, headerOf, toClientHeaders, type WorkerReply } from '#kernel'
import { parseBoundedJson } from '../formats/bounded-json.ts'

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
