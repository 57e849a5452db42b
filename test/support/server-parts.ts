/** The parts of a server that contexts and sinks need, without a server. */
import { BodyBudget, BodyPool } from '../../kernel/http/body-memory.ts'
import { createCors } from '../../kernel/http/cors.ts'
import { Heartbeats } from '../../kernel/http/heartbeat.ts'
import { LongBodies } from '../../kernel/http/json-body.ts'
import type { ServerParts } from '../../kernel/http/server-parts.ts'
import { createLogger } from '../../kernel/observe/log.ts'

export function serverParts(): ServerParts {
  return {
    bodies: new BodyPool(),
    longBodies: new LongBodies(128),
    bodyBudget: new BodyBudget({ maxBodyBytes: 1, maxHeldBytes: 1, maxHeldBytesPerOwner: 1 }),
    maxJsonDepth: 128,
    heartbeats: new Heartbeats(0),
    cors: createCors([]),
    sessions: null,
    log: createLogger({ level: 'silent', thread: 0 }),
    access: null,
    closesConnections: false,
    addressOf: (peer) => peer,
    requestBegan: () => {},
    requestEnded: () => {},
  }
}
