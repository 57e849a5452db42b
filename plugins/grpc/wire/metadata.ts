/** Request headers as gRPC metadata. */
import { Metadata } from '@grpc/grpc-js'
import type { HeaderList } from '#kernel'

/** They say something of an HTTP body, or belong to the connection. */
const HTTP_ONLY: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'te',
  'transfer-encoding',
  'user-agent',
])
const NAME = /^[0-9a-z_.-]+$/
const VALUE = /^[ -~]*$/

/** What a line of metadata cannot hold is left out. */
export function toMetadata(headers: HeaderList): Metadata {
  const metadata = new Metadata()
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]
    if (HTTP_ONLY.has(name) || name.startsWith('grpc-') || name.endsWith('-bin')) continue
    if (NAME.test(name) && VALUE.test(headers[at + 1])) metadata.add(name, headers[at + 1])
  }
  return metadata
}
