/** Headers of gRPC requests over HTTP/2. */
import type { HeaderList } from '#kernel'

/** Headers of the HTTP body or connection. */
const HTTP_ONLY: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])
const NAME = /^[0-9a-z_.-]+$/
const VALUE = /^[ -~]*$/

/** Drops headers that metadata cannot hold. */
function isForwarded(name: string, value: string): boolean {
  if (HTTP_ONLY.has(name) || name.startsWith('grpc-') || name.endsWith('-bin')) return false
  return NAME.test(name) && VALUE.test(value)
}

/** Headers of an HTTP/2 request for a method. The object has no prototype, since clients choose the names. */
export function toRequestHeaders(path: string, headers: HeaderList): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = Object.create(null)
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]
    const value = headers[at + 1]
    if (!isForwarded(name, value)) continue
    const known = all[name]
    if (known === undefined) all[name] = value
    else if (name === 'authorization') continue
    else if (typeof known === 'string') all[name] = [known, value]
    else known.push(value)
  }
  all[':method'] = 'POST'
  all[':path'] = path
  all['content-type'] = 'application/grpc'
  all['user-agent'] = 'weir'
  all['grpc-accept-encoding'] = 'identity'
  all.te = 'trailers'
  return all
}
