/** Gives each request a W3C trace context, and returns the trace id to the client. */
import {
  Action,
  crypto,
  Description,
  handleRequest,
  handleResponse,
  Request,
  toHex,
  toUtf8,
} from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders(['traceparent']).needsResponseHeaders([]).reusesInstance().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    const spanId = toHex(crypto.randomBytes(8))
    return Action.modify()
      .setHeader('traceparent', `00-${traceIdOf(request)}-${spanId}-01`)
      .setHeader('x-weir-route', request.route)
  })
}

export function on_response(): i32 {
  return handleResponse((request, response) => Action.modify().setHeader('x-trace-id', traceIdOf(request)))
}

/** The caller's trace, or one made of the request's id: nothing has to be kept from one phase to the next. */
function traceIdOf(request: Request): string {
  const given = givenTraceId(request.headers.get('traceparent'))
  return given === null ? toHex(crypto.sha256(toUtf8(request.id))).substring(0, 32) : given
}

/** The trace id of a version 00 header (W3C Trace Context 3.2.2), or null when it is malformed or all zero. */
function givenTraceId(header: string | null): string | null {
  if (header === null || header.length != 55 || !header.startsWith('00-') || header.charAt(35) != '-') return null
  const id = header.substring(3, 35)
  let isZero = true
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i)
    if (!((unit >= 0x30 && unit <= 0x39) || (unit >= 0x61 && unit <= 0x66))) return null
    if (unit != 0x30) isZero = false
  }
  return isZero ? null : id
}
