/** One message of a socket, run like a request: what came is its body, and its reply goes to whoever took the message. */
import type { SocketRun } from '../contracts/socket.ts'
import type { CompiledRoute } from './compiled-route.ts'
import type { HttpContext } from './context.ts'
import type { CopiedHeaders } from './request-headers.ts'
import { makeRequestId } from './request-id.ts'
import type { ServerParts } from './server-parts.ts'
import { TakenContext } from './taken-context.ts'

/** What all messages of a socket have of the request that opened it. */
export interface MessageOrigin {
  readonly server: ServerParts
  readonly route: CompiledRoute
  readonly request: HttpContext
  readonly pathValues: readonly string[]
  /** Closes the connection at once, without a close frame. */
  cut(): void
  /** Its reply is whole or given up. */
  ended(message: MessageContext): void
}

export class MessageContext extends TakenContext {
  readonly message: SocketRun
  readonly #origin: MessageOrigin

  constructor(origin: MessageOrigin, message: SocketRun) {
    const { server, route, request, pathValues } = origin
    super(server, route, message.reply, {
      path: request.path,
      query: request.query,
      pathValues,
      headers: copyOf(request.headers),
      requestId: makeRequestId(route.requestIdPrefix),
      identity: request.identity,
      clientAddress: request.clientAddress,
      body: message.body,
    })
    this.message = message
    this.#origin = origin
  }

  /** A client that has stopped reading would not read a close frame either. */
  override destroy(): void {
    if (this.isUntaken) this.#origin.cut()
    else super.destroy()
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
