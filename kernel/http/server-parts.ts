/** What a request needs of the server that took it: the parts all requests of a listener share. */
import type { Logger } from '../contracts/log.ts'
import type { BodyPool } from './body-pool.ts'
import type { HttpContext } from './context.ts'
import type { Cors } from './cors.ts'
import type { Heartbeats } from './heartbeat.ts'

export interface ServerParts {
  readonly bodies: BodyPool
  readonly heartbeats: Heartbeats
  readonly cors: Cors
  readonly log: Logger
  /** Writes the access line; null when access lines are off. */
  readonly access: ((ctx: HttpContext, durationMs: number) => void) | null
  /** Draining: every reply closes its connection. */
  readonly closesConnections: boolean
  requestEnded(ctx: HttpContext): void
}
