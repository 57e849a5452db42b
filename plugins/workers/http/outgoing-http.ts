/** The client of this plugin for others: connections of their own to places that are no workers. */
import type { HttpPeer, OutgoingHttp, PeerSettings } from '#kernel'
import { HttpTransport } from './http-transport.ts'

const MAX_RESPONSE_HEADER_BYTES = 32_768

/** No request is sent twice here: who asks for it may not want that it is done twice. */
export const outgoingHttp: OutgoingHttp = {
  connect({ origin, lookup, ca, keepAliveMs, maxIdle }: PeerSettings): HttpPeer {
    const transport = new HttpTransport({
      keepAliveMs,
      maxIdlePerWorker: maxIdle,
      maxResponseHeaderBytes: MAX_RESPONSE_HEADER_BYTES,
      resends: false,
      lookup,
      tls: { ca, rejectUnauthorized: true },
    })
    const destination = { url: new URL(origin).origin }
    return {
      send: (request, limits, handler) => transport.open(destination, request, limits, handler),
      close: () => transport.close(),
    }
  },
}
