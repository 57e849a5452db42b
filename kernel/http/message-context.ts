/** One message of a socket, run like a request: what came is its body, what is replied goes back as messages. */
import type { Socket, SocketMessage } from '../contracts/socket.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HttpContext } from './context.ts'
import type { CopiedHeaders } from './request-headers.ts'
import { makeRequestId } from './request-id.ts'
import type { ServerParts } from './server-parts.ts'
import type { SocketReply } from './socket-reply.ts'

/** What all messages of a socket have of the request that opened it. */
export interface MessageOrigin {
  readonly server: ServerParts
  readonly route: CompiledRoute
  readonly request: HttpContext
  readonly pathValues: readonly string[]
  readonly socket: Socket
  /** Its reply is whole or given up. */
  ended(message: MessageContext): void
}

export class MessageContext extends HttpContext implements SocketMessage {
  readonly socket: Socket
  readonly isBinary: boolean
  readonly reply: SocketReply
  readonly #origin: MessageOrigin

  constructor(origin: MessageOrigin, reply: SocketReply, bytes: Buffer, isBinary: boolean) {
    const { server, route, request } = origin
    super(
      server,
      route,
      reply.port,
      'POST',
      request.path,
      request.query,
      origin.pathValues,
      copyOf(request.headers),
      makeRequestId(route.requestIdPrefix),
    )
    this.#origin = origin
    this.socket = origin.socket
    this.isBinary = isBinary
    this.reply = reply
    this.identity = request.identity
    this.isAdmitted = true
    this.hasBody = true
    this.takeBody(bytes, null)
  }

  override get clientAddress(): string {
    return this.#origin.request.clientAddress
  }

  protected override finished(): void {
    super.finished()
    this.#origin.ended(this)
  }
}

/** Hooks may change the headers of one message. */
function copyOf(headers: CopiedHeaders): CopiedHeaders {
  return { ...headers, kept: [...headers.kept], forwarded: [...headers.forwarded] }
}
