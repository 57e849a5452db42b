/** What a request needs of the server that took it: the parts all requests of a listener share. */
import type { Logger } from '../contracts/log.ts'
import type { RequestContext } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { BodyPool } from './body-pool.ts'
import type { Cors } from './cors.ts'
import type { Heartbeats } from './heartbeat.ts'
import type { LongBodies } from './long-bodies.ts'
import type { Placed } from './open-requests.ts'

/** A request as its server counts it, and as its access line tells of it. */
export interface ServedRequest extends RequestContext, Placed {
  /** URL of the worker that was chosen last; null when none was. */
  readonly workerUrl: string | null
  readonly model: string | null
  readonly attempts: number
}

export interface ServerParts {
  readonly bodies: BodyPool
  readonly longBodies: LongBodies
  /** Deepest nesting of a JSON body. */
  readonly maxJsonDepth: number
  readonly heartbeats: Heartbeats
  readonly cors: Cors
  readonly log: Logger
  /** Writes the access line; null when access lines are off. */
  readonly access: ((request: ServedRequest, durationMs: number) => void) | null
  /** Every response closes its connection: `kernel.http.keepAlive` is false, or the listener drains. */
  readonly closesConnections: boolean
  /** Who the client is. @param peer the connection's other end */
  addressOf(peer: string, headers: HeaderList): string
  requestEnded(request: ServedRequest): void
}
