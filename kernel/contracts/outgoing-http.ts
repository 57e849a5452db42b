/** HTTP/1.1 to servers that are no workers, such as tool servers, over the same client. */
import type { LookupFunction } from 'node:net'
import { token } from './token.ts'
import type { Exchange, UpstreamHandler, UpstreamLimits, UpstreamRequest } from './transport.ts'

export interface PeerSettings {
  /** Scheme, host and port; http or https. */
  readonly origin: string
  /** Resolves the host name and rejects forbidden addresses; not called for literal addresses. */
  readonly lookup: LookupFunction
  /** PEM certificates of authorities that replace the system's. */
  readonly ca?: string
  /** Age at which an idle connection is closed, in milliseconds. */
  readonly keepAliveMs: number
  /** Largest number of idle connections. */
  readonly maxIdle: number
}

/** One server and its connections, which are not shared with other peers. */
export interface HttpPeer {
  /**
   * Sends a request once. The number of concurrent requests is not limited.
   * @param request with the full path
   */
  send(request: UpstreamRequest, limits: UpstreamLimits, handler: UpstreamHandler): Exchange
  /** Closes every connection; running requests fail as `reset`. */
  close(): void
}

export interface OutgoingHttp {
  connect(settings: PeerSettings): HttpPeer
}

export const OutgoingHttp = token<OutgoingHttp>('outgoing-http')
