/** The WebSockets of one listener: opens them after the checks and closes them at shutdown. */
import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocketBehavior } from 'uWebSockets.js'
import { ANONYMOUS_TENANT, tenantOf } from '../contracts/auth.ts'
import type { SocketBounds } from '../contracts/socket.ts'
import { BodyBudget, type BodyLimits } from './body-memory.ts'
import type { CompiledSocket } from './compiled-route.ts'
import type { HttpContext } from './context.ts'
import { httpErrors } from './http-errors.ts'
import type { HttpResponseSink } from './http-response-sink.ts'
import { OpenSocket } from './open-socket.ts'
import type { ServerParts } from './server-parts.ts'

/** The library disconnects a client that sends no pong within this time. Seconds. */
const PING_LIMIT_SECS = 60

/** Data of a request that the library needs for an upgrade. */
export interface Handshake {
  readonly socket: CompiledSocket
  readonly key: string
  /** Subprotocols in the client's order. */
  readonly offered: readonly string[]
  readonly context: us_socket_context_t
}

export type OnUpgrade = (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void

/** User data of each socket in the library. */
interface Held {
  readonly connection: OpenSocket
}

export class SocketServer {
  readonly #server: ServerParts
  readonly #onClosed: () => void
  readonly #open = new Map<CompiledSocket, Set<OpenSocket>>()
  readonly #handshakes = new WeakMap<HttpContext, { handshake: Handshake; sink: HttpResponseSink }>()
  /** The library holds what has arrived of a message and reports only complete ones: each socket counts with its most. */
  readonly #unfinished: BodyBudget
  readonly #maxMessageBytes: number
  #isDraining = false

  /** @param onClosed called when a socket has closed */
  constructor(server: ServerParts, limits: BodyLimits, onClosed: () => void) {
    this.#server = server
    this.#onClosed = onClosed
    this.#unfinished = new BodyBudget(limits)
    this.#maxMessageBytes = limits.maxHeldBytesPerOwner
  }

  get size(): number {
    let count = 0
    for (const sockets of this.#open.values()) count += sockets.size
    return count
  }

  /** @param upgrade runs the upgrade request, whose handler calls `accept` */
  behavior(bounds: SocketBounds, upgrade: OnUpgrade): WebSocketBehavior<Held> {
    return {
      compression: 0,
      maxPayloadLength: this.#mostBytes(bounds),
      maxBackpressure: bounds.maxBufferedBytes,
      closeOnBackpressureLimit: true,
      idleTimeout: PING_LIMIT_SECS,
      sendPingsAutomatically: true,
      upgrade,
      open: (ws) => ws.getUserData().connection.opened(ws),
      message: (ws, data, isBinary) => ws.getUserData().connection.received(data, isBinary),
      drain: (ws) => ws.getUserData().connection.drained(),
      close: (ws, code) => ws.getUserData().connection.closed(code),
    }
  }

  expect(ctx: HttpContext, sink: HttpResponseSink, handshake: Handshake): void {
    this.#handshakes.set(ctx, { sink, handshake })
  }

  /** A message somewhat too large is closed with 1009; beyond this the library disconnects without a code. */
  #mostBytes({ maxMessageBytes }: SocketBounds): number {
    return Math.min(Math.ceil(1.125 * maxMessageBytes), this.#maxMessageBytes)
  }

  /**
   * After the access check.
   * @throws origin_not_allowed (403), too_many_sockets, too_many_socket_bytes (429), socket_unavailable (503)
   */
  accept(ctx: HttpContext): void {
    const expected = this.#handshakes.get(ctx)
    if (expected === undefined) throw new Error('a socket route was reached without a handshake')
    const { socket, key, offered, context } = expected.handshake
    this.#assertOrigin(ctx, socket)
    const open = this.#open.get(socket) ?? new Set()
    if (this.#isDraining) throw httpErrors.socket_unavailable('the gateway is shutting down')
    const { maxOpen, maxPerTenant } = socket.definition.bounds
    if (open.size >= maxOpen) throw httpErrors.socket_unavailable(`${maxOpen} sockets of this route are open`)
    const tenant = tenantOf(ctx)
    if (tenant !== ANONYMOUS_TENANT && countOf(open, tenant) >= maxPerTenant)
      throw httpErrors.too_many_sockets(maxPerTenant)
    const bytes = this.#mostBytes(socket.definition.bounds)
    const owner = ctx.bodyOwner
    const error = this.#unfinished.take(owner, bytes)
    if (error?.kind === 'rate_limited') throw httpErrors.too_many_socket_bytes(bytes)
    if (error !== null)
      throw httpErrors.socket_unavailable(
        `its messages of up to ${bytes} bytes, with those of the open ones, exceed kernel.http.maxHeldBodyBytes`,
      )
    this.#open.set(socket, open)
    const protocol = socket.definition.protocols?.find((one) => offered.includes(one)) ?? ''
    // The library provides it only until the upgrade.
    void ctx.clientAddress
    const connection = new OpenSocket(this.#server, socket, ctx, protocol, (closed) => {
      open.delete(closed)
      this.#unfinished.give(owner, bytes)
      this.#onClosed()
    })
    open.add(connection)
    expected.sink.upgrade<Held>({ connection }, key, protocol, context)
  }

  /** Rejects new sockets; each open one closes when its running messages have ended. */
  drain(): void {
    this.#isDraining = true
    for (const sockets of this.#open.values()) for (const socket of [...sockets]) socket.goAway()
  }

  /** Browsers send the page's origin; the server must check it. @source RFC 6455 §10.2 */
  #assertOrigin(ctx: HttpContext, { definition }: CompiledSocket): void {
    const origin = ctx.header('origin')
    if (origin === undefined || isSameOrigin(origin, ctx.header('host'))) return
    const { cors } = this.#server
    const isAllowed = definition.access === 'admin' ? cors.names(origin) : cors.allows(origin)
    if (!isAllowed) throw httpErrors.origin_not_allowed()
  }
}

function countOf(sockets: ReadonlySet<OpenSocket>, tenant: string): number {
  let count = 0
  for (const { request } of sockets) if (tenantOf(request) === tenant) count++
  return count
}

export function readHandshake(
  socket: CompiledSocket,
  req: HttpRequest,
  context: us_socket_context_t,
): Handshake {
  const offered = req.getHeader('sec-websocket-protocol').split(',')
  return {
    socket,
    key: req.getHeader('sec-websocket-key'),
    offered: offered.map((one) => one.trim()),
    context,
  }
}

/** The page was loaded from this gateway, by the host name in the request. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`)
}
