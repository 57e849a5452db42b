/** Errors of this listener as whole replies that close the connection, also where there is no request to answer. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { apiErrorFormat, type GatewayError, type RequestFacts } from '#kernel'

/** There is none; the format looks at the error alone. */
const NO_REQUEST = {} as RequestFacts
const VERSION_STATUS = 505
const REASONS: ReadonlyMap<number, string> = new Map([
  [400, 'Bad Request'],
  [405, 'Method Not Allowed'],
  [408, 'Request Timeout'],
  [413, 'Content Too Large'],
  [431, 'Request Header Fields Too Large'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [505, 'HTTP Version Not Supported'],
])

function refusal(error: GatewayError): { status: number; headers: string[]; body: string } {
  const body = JSON.stringify(apiErrorFormat.body(error, NO_REQUEST))
  return {
    status: error.code === 'http_version_not_supported' ? VERSION_STATUS : error.status,
    headers: [
      'content-type',
      'application/json',
      'content-length',
      String(Buffer.byteLength(body)),
      'x-weir-error-code',
      error.code,
      'connection',
      'close',
      ...error.headers,
    ],
    body,
  }
}

export function refuse(response: ServerResponse, error: GatewayError): void {
  if (response.headersSent || response.destroyed) return
  const { status, headers, body } = refusal(error)
  response.writeHead(status, headers)
  response.end(body)
}

/** For what never became a request. */
export function refuseRaw(socket: Duplex, error: GatewayError): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const { status, headers, body } = refusal(error)
  const lines = [`HTTP/1.1 ${status} ${REASONS.get(status) ?? ''}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
