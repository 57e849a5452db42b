/** Errors of the HTTP layer itself: framing, headers, bodies, unknown routes. */
import { defineErrors } from '../errors/define-errors.ts'
import type { GatewayError } from '../errors/gateway-error.ts'

const MAX_SHOWN_PATH = 200

/** Error messages repeat this much of a path. */
function shorten(path: string): string {
  return path.length <= MAX_SHOWN_PATH ? path : `${path.slice(0, MAX_SHOWN_PATH)}…`
}

export const httpErrors = defineErrors('http', {
  route_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (path: string) => `no route ${shorten(path)}`,
  },
  plugin_not_enabled: {
    kind: 'not_found',
    source: 'client',
    text: (path: string, plugin: string) =>
      `no route ${shorten(path)}: the plugin ${plugin} is not enabled; add '${plugin}: {}' under plugins`,
  },
  method_not_allowed: {
    kind: 'method_not_allowed',
    source: 'client',
    text: (method: string, path: string, allow: string) =>
      `${shorten(path)} does not allow ${method}; allowed: ${allow}`,
  },
  payload_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (limitBytes: number) => `the request body is larger than the limit of ${limitBytes} bytes`,
  },
  too_many_body_bytes: {
    kind: 'rate_limited',
    source: 'client',
    text: (limitBytes: number) =>
      `the request bodies of this caller and the files that they name exceed ${limitBytes} bytes (kernel.http.maxHeldBodyBytesPerTenant); try again when others are done`,
  },
  body_memory_exhausted: {
    kind: 'unavailable',
    source: 'gateway',
    text: (limitBytes: number) =>
      `the request bodies that are being served and the files that they name exceed ${limitBytes} bytes (kernel.http.maxHeldBodyBytes); try again`,
  },
  unsupported_content_encoding: {
    kind: 'unsupported_media',
    source: 'client',
    text: (encoding: string) =>
      `request bodies with content-encoding '${encoding}' are not supported; send it uncompressed`,
  },
  headers_too_large: {
    kind: 'headers_too_large',
    source: 'client',
    text: (limit: string) => `the request headers exceed ${limit}`,
  },
  event_too_large: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (limitBytes: number) => `an event of the stream is larger than the limit of ${limitBytes} bytes`,
  },
  origin_not_allowed: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'WebSockets are not allowed from this origin; see kernel.http.corsOrigins',
  },
  socket_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: (why: string) => `cannot open a WebSocket: ${why}`,
  },
  too_many_sockets: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: number) =>
      `cannot open a WebSocket: this tenant has ${limit} of at most ${limit} open on this thread; close one of them`,
  },
  too_many_socket_bytes: {
    kind: 'rate_limited',
    source: 'client',
    text: (bytes: number) =>
      `cannot open a WebSocket: its messages of up to ${bytes} bytes, with those of this caller's open ones, exceed kernel.http.maxHeldBodyBytesPerTenant; close one of them`,
  },
  foreign_page: {
    kind: 'forbidden',
    source: 'client',
    text: () =>
      'pages of other sites or host names may not use the control plane while no key is configured; set a key, or add the origin to kernel.http.corsOrigins',
  },
  body_timeout: {
    kind: 'timeout',
    source: 'client',
    text: () =>
      'the request body arrived too slowly (kernel.http.bodyIdleMs, kernel.http.bodyMinBytesPerSecond)',
  },
  bad_framing: { kind: 'bad_request', source: 'client', text: (what: string) => what },
  json_parse_error: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `the request body ${problem}`,
  },
  json_too_deep: {
    kind: 'bad_request',
    source: 'client',
    text: (limit: number, position: number) =>
      `the request body is nested more than ${limit} levels deep (kernel.http.maxJsonDepth), at position ${position}`,
  },
  json_too_complex: {
    kind: 'bad_request',
    source: 'client',
    text: (limit: number, what: string) => `the request body holds more than ${limit} ${what}`,
  },
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `field '${field}' ${problem}`,
  },
  invalid_query: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string, problem: string) => `query parameter '${name}' ${problem}`,
  },
  internal_error: { kind: 'internal', source: 'gateway', text: () => 'internal error' },
  client_certificate_required: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'this listener requires a client certificate of a configured authority; none was sent',
  },
})

/** The error of a query parameter, for values that the schema of the route cannot exclude. @param problem such as `must be …` */
export function queryError(name: string, problem: string): GatewayError {
  return httpErrors.invalid_query.with({ param: name }, name, problem)
}
