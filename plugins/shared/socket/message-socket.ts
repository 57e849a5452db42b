/**
 * Sockets whose messages are requests: each is run like a request of its own, and its reply goes back as messages. Given
 * to `host.socket`.
 */
import type { MessageSocketDefinition, SocketLimits, SocketRouteDefinition } from '#kernel'
import { IdleWatch } from './idle-watch.ts'
import { TurnSocket } from './turn-socket.ts'

const DEFAULT_LIMITS: SocketLimits = {
  maxMessageBytes: 16_777_216,
  maxOpen: 1_000,
  idleMs: 600_000,
  maxBufferedBytes: 16_777_216,
  maxRunning: 1,
  maxWaiting: 16,
}

export function messageSocket(definition: MessageSocketDefinition): SocketRouteDefinition {
  const { path, access, errors, headers, endpoint, requestIdPrefix, protocols } = definition
  const limits = { ...DEFAULT_LIMITS, ...definition.limits }
  const idle = new IdleWatch(limits.idleMs)
  return {
    path,
    access,
    errors,
    headers,
    endpoint,
    requestIdPrefix,
    protocols,
    bounds: limits,
    open: (connection) => new TurnSocket(connection, definition, limits, idle),
  }
}
