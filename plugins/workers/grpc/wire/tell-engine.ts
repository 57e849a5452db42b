/** Tells an engine something whose answer does not matter. */
import { constants } from 'node:http2'
import type { HeaderList } from '#kernel'
import type { TakeBack } from './engine-calls.ts'
import type { H2Connection } from './h2-connection.ts'
import { framed } from './message-framer.ts'
import { toRequestHeaders } from './metadata.ts'

/** How long the engine has to answer, in milliseconds. */
const LIMIT_MS = 5_000

/** Nothing happens where the connection is gone: the engine knows that nobody listens. */
export function tellEngine(connection: H2Connection, { path, body }: TakeBack, headers: HeaderList): void {
  if (!connection.isOpen || connection.isConnecting) return
  const stream = connection.open(toRequestHeaders(path, headers))
  const limit = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), LIMIT_MS)
  stream.on('error', () => {})
  stream.on('close', () => clearTimeout(limit))
  stream.resume()
  stream.end(framed(body))
}
