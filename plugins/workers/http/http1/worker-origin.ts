/** Parses worker URLs. */
import { isIP } from 'node:net'
import type { HeadTemplate } from './request-head.ts'

/** Address of connections, which workers of one origin share. */
export interface WorkerOrigin {
  /** Scheme, host and port, such as `http://127.0.0.1:8000`. */
  readonly key: string
  readonly isTls: boolean
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
  /** Name for the TLS handshake; undefined for addresses, which have none. @source RFC 6066 §3 */
  readonly servername: string | undefined
}

/** A parsed worker URL. */
export interface WorkerUrl extends HeadTemplate {
  readonly origin: WorkerOrigin
}

/** How vendors end their base URLs: `/v1`, `/api/v3`, `/v1beta/openai`. */
const VERSION_AT_END = /\/v\d[a-z0-9]*(\/openai)?$/

/**
 * Parses a worker URL; null unless its scheme is http or https. Drops a trailing slash. A version at the end of its path
 * replaces the `/v1` of API paths, and is not part of native paths such as `/generate` and `/metrics`.
 */
export function readWorkerUrl(text: string): WorkerUrl | null {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  const isTls = url.protocol === 'https:'
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  const pathPrefix = url.pathname.endsWith('/') ? url.pathname.slice(0, -1) : url.pathname
  return {
    origin: {
      key: url.origin,
      isTls,
      host,
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      servername: isIP(host) === 0 ? host : undefined,
    },
    pathPrefix,
    versionlessPrefix: VERSION_AT_END.test(pathPrefix) ? pathPrefix.replace(VERSION_AT_END, '') : null,
    afterPath: ` HTTP/1.1\r\nhost: ${url.host}\r\n`,
  }
}
