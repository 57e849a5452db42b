/** What this listener refuses by itself; all else is answered by the gateway behind it. */
import { defineErrors } from '#kernel'

const MAX_SHOWN_NAME = 100

export const legacyErrors = defineErrors('legacy-http', {
  bad_framing: { kind: 'bad_request', source: 'client', text: (what: string) => what },
  header_not_ascii: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string) =>
      `the value of header '${name.slice(0, MAX_SHOWN_NAME)}' begins or ends in a byte that is not ASCII; percent-encode it`,
  },
  headers_too_large: {
    kind: 'headers_too_large',
    source: 'client',
    text: (limit: string) => `the request headers are more than ${limit}`,
  },
  head_timeout: {
    kind: 'timeout',
    source: 'client',
    text: (limitMs: number) =>
      `the request head was not whole within ${limitMs} ms (plugins.legacy-http.headMs)`,
  },
  payload_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (limitBytes: number) => `the request body is larger than the limit of ${limitBytes} bytes`,
  },
  /** Sent with status 505, which no kind of error has. */
  http_version_not_supported: {
    kind: 'not_implemented',
    source: 'client',
    text: () => 'HTTP/1.0 and HTTP/1.1 are served here',
  },
  method_not_allowed: {
    kind: 'method_not_allowed',
    source: 'client',
    text: (method: string) => `${method} is not served: this is no proxy for other hosts`,
  },
  listener_unreachable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the gateway takes no requests now',
  },
  listener_broke_off: {
    kind: 'bad_gateway',
    source: 'gateway',
    text: () => 'the gateway broke off before it answered',
  },
})
