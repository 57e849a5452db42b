/** gRPC status of a call, from the engine or derived from HTTP/2. @source https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
import { constants, type IncomingHttpHeaders } from 'node:http2'

export interface Status {
  readonly code: number
  readonly details: string
  /** Whether `details` come from the engine. */
  readonly isOwn: boolean
}

const UNKNOWN = 2
const INTERNAL = 13
export const UNAVAILABLE = 14

/** Longest text of a status that is kept, in characters. */
const MAX_DETAILS = 8_192

/** Null if the headers have no status. */
export function statusIn(headers: IncomingHttpHeaders): Status | null {
  const text = headers['grpc-status']
  if (text === undefined) return null
  const code = Number(text)
  const details = String(headers['grpc-message'] ?? '').slice(0, MAX_DETAILS)
  return {
    code: Number.isInteger(code) && code >= 0 ? code : UNKNOWN,
    details: unquote(details),
    isOwn: true,
  }
}

/** Keeps invalid percent encoding as it is. */
function unquote(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const BY_HTTP_STATUS: ReadonlyMap<number, number> = new Map([
  [400, INTERNAL],
  [401, 16],
  [403, 7],
  [404, 12],
  [429, UNAVAILABLE],
  [502, UNAVAILABLE],
  [503, UNAVAILABLE],
  [504, UNAVAILABLE],
])

/** Status of a response that is not gRPC; null if it is. */
export function httpProblem(headers: IncomingHttpHeaders): Status | null {
  const httpStatus = Number(headers[':status'])
  const type = String(headers['content-type'] ?? '')
  if (httpStatus === 200 && type.startsWith('application/grpc')) return null
  const code = httpStatus === 200 ? UNKNOWN : (BY_HTTP_STATUS.get(httpStatus) ?? UNKNOWN)
  const details =
    httpStatus === 200 ? `unexpected content-type ${JSON.stringify(type)}` : `HTTP status ${httpStatus}`
  return { code, details, isOwn: false }
}

const BY_RESET: ReadonlyMap<number, number> = new Map([
  [constants.NGHTTP2_REFUSED_STREAM, UNAVAILABLE],
  [constants.NGHTTP2_CANCEL, 1],
  [constants.NGHTTP2_ENHANCE_YOUR_CALM, 8],
  [constants.NGHTTP2_INADEQUATE_SECURITY, 7],
])

/** Status of a stream reset. */
export function resetStatus(code: number): Status {
  return {
    code: BY_RESET.get(code) ?? INTERNAL,
    details: `the stream was reset with code ${code}`,
    isOwn: false,
  }
}

/** A call to an engine that ended with a status other than OK. */
export class GrpcFault extends Error {
  /** gRPC status code. */
  readonly code: number

  constructor(code: number, details: string) {
    super(details === '' ? `status ${code}` : details)
    this.name = 'GrpcFault'
    this.code = code
  }
}

export const UNIMPLEMENTED = 12
