/**
 * The same API over a WebSocket: one turn after another; the last one can be continued without being stored.
 */
import {
  checkModelChanges,
  type ErrorFormat,
  GatewayError,
  isObject,
  type JsonObject,
  type RequestContext,
  type Socket,
  type SocketRouteDefinition,
} from '#kernel'
import { messageSocket } from '#shared'
import { responsesErrors } from '../errors.ts'
import type { Parts } from './parts.ts'
import type { RememberedTurn } from './run/load-past.ts'
import type { RunEnd } from './run/response-run.ts'
import { readCreate, serveCreate } from './run/serve-create.ts'

const IDLE_MS = 600_000
const CLOSE_GRACE_MS = 1_000

interface SocketState {
  readonly openedAtMs: number
  last: RememberedTurn | null
}

export function responsesSocket(parts: Parts, errors: ErrorFormat): SocketRouteDefinition {
  const states = new WeakMap<Socket, SocketState>()
  const { maxOpen, maxPerTenant, maxMessageBytes, maxAgeMs } = parts.config.socket
  return messageSocket({
    path: '/v1/responses',
    access: 'api',
    errors,
    endpoint: 'responses',
    limits: {
      maxOpen,
      maxPerTenant,
      maxMessageBytes,
      idleMs: IDLE_MS,
      maxRunning: 1,
    },
    onOpen: (socket) => {
      states.set(socket, { openedAtMs: performance.now(), last: null })
    },
    onMessage: (ctx, { socket }) => {
      const state = states.get(socket)
      if (state === undefined) throw responsesErrors.websocket_message_invalid('the socket is not open')
      if (performance.now() - state.openedAtMs > maxAgeMs) {
        // The error is delivered before the socket closes.
        setTimeout(() => socket.close(1000, 'maximum age reached'), CLOSE_GRACE_MS).unref()
        throw responsesErrors.websocket_connection_limit_reached()
      }
      return serveMessage(parts, ctx, socket, state)
    },
  })
}

async function serveMessage(
  parts: Parts,
  ctx: RequestContext,
  socket: Socket,
  state: SocketState,
): Promise<void> {
  const remembered = state.last
  try {
    const request = readCreate(parts, toCreateBody(ctx))
    const onEnd = (end: RunEnd, id: string) => {
      remember(socket, state, nextMemory(end, id, remembered, request.previousResponseId))
    }
    await serveCreate(parts, ctx, request, { isSocket: true, remembered, onEnd })
  } catch (error) {
    // A turn that failed to continue the last one discards it.
    if (continuesLast(ctx, remembered) && error instanceof GatewayError) remember(socket, state, null)
    throw error
  }
}

/** Memory of a turn counts for its tenant; one beyond the budget is forgotten, and the client must send it again. */
function remember(socket: Socket, state: SocketState, turn: RememberedTurn | null): void {
  if (turn === state.last) return
  const isKept = socket.keep(turn === null ? 0 : JSON.stringify(turn.items).length)
  state.last = isKept ? turn : null
}

function nextMemory(
  { status, items }: RunEnd,
  responseId: string,
  remembered: RememberedTurn | null,
  previousId: string | null,
): RememberedTurn | null {
  if (status === 'completed' || status === 'incomplete') return { responseId, items: items() }
  return previousId !== null && previousId === remembered?.responseId ? null : remembered
}

function continuesLast(ctx: RequestContext, remembered: RememberedTurn | null): boolean {
  if (remembered === null) return false
  try {
    const body = ctx.bodyJson()
    return isObject(body) && body.previous_response_id === remembered.responseId
  } catch {
    return false
  }
}

/** @throws 400 for anything but a `response.create`, model_change_not_allowed (403) */
function toCreateBody(ctx: RequestContext): JsonObject {
  const body = ctx.bodyJson()
  if (!isObject(body)) throw responsesErrors.websocket_message_invalid('a message must be a JSON object')
  const { type, response, ...rest } = body
  if (type !== 'response.create')
    throw responsesErrors.websocket_message_invalid.with(
      { param: 'type' },
      "the only messages are those of type 'response.create'",
    )
  for (const name of ['stream_options', 'background'])
    if ((rest[name] ?? false) !== false)
      throw responsesErrors.unsupported_parameter.with({ param: name }, name)
  if (!isObject(response)) return { ...rest, stream: true }
  // The members beside it were checked as those of every body.
  checkModelChanges(ctx.identity, Buffer.from(JSON.stringify(response)))
  return { ...response, ...rest, stream: true }
}
