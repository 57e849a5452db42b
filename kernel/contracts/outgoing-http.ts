/** HTTP/1.1 to places that are no workers, such as tool servers, over the client that the gateway has for its workers. */
import type { LookupFunction } from 'node:net'
import { token } from './token.ts'
import type { Exchange, UpstreamHandler, UpstreamLimits, UpstreamRequest } from './transport.ts'

export interface PeerSettings {
  /** Scheme, host and port; http or https. */
  readonly origin: string
  /** Resolves its name, and refuses what may not be connected to; literal addresses never come here. */
  readonly lookup: LookupFunction
  /** PEM of authorities to trust in place of the system's. */
  readonly ca?: string
  /** Age at which an idle connection is closed, in milliseconds. */
  readonly keepAliveMs: number
  /** Idle connections that are kept at most. */
  readonly maxIdle: number
}

/** One place, and the connections to it: nobody else's requests go over them. */
export interface HttpPeer {
  /**
   * Sends a request; a request is never sent twice. There is no limit on how many run at once.
   * @param request its path is the whole one
   */
  send(request: UpstreamRequest, limits: UpstreamLimits, handler: UpstreamHandler): Exchange
  /** Closes every connection; requests under way fail as `reset`. */
  close(): void
}

export interface OutgoingHttp {
  connect(settings: PeerSettings): HttpPeer
}

export const OutgoingHttp = token<OutgoingHttp>('outgoing-http')
