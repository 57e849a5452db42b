/** What all requests of a listener share. */
import type { Logger } from '../contracts/log.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { BodyPool } from './body-pool.ts'
import type { HttpContext } from './context.ts'
import type { Cors } from './cors.ts'
import type { Heartbeats } from './heartbeat.ts'
import type { LongBodies } from './long-bodies.ts'

/** Implemented by `server.ts`. */
export interface ServerParts {
  readonly bodies: BodyPool
  readonly longBodies: LongBodies
  /** Deepest nesting of a JSON body. */
  readonly maxJsonDepth: number
  readonly heartbeats: Heartbeats
  readonly cors: Cors
  readonly log: Logger
  /** Writes the access line; null when access lines are off. */
  readonly access: ((request: HttpContext, durationMs: number) => void) | null
  /** Every response closes its connection: `kernel.http.keepAlive` is false, or the listener drains. */
  readonly closesConnections: boolean
  /** Address of the client. @param peer the connection's other end */
  addressOf(peer: string, headers: HeaderList): string
  /** Counts the request as open. */
  requestBegan(request: HttpContext): void
  requestEnded(request: HttpContext): void
}
