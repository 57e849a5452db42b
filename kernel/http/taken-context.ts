/** A request whose reply goes to a taker: work without a client, or a message of a socket. */
import type { Identity } from '../contracts/auth.ts'
import type { ReplyTaker } from '../contracts/reply-taker.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { HttpContext } from './context.ts'
import type { CopiedHeaders } from './request-headers.ts'
import type { ServerParts } from './server-parts.ts'
import { TakenReply } from './taken-reply.ts'

/** What a request from the network would have brought along. */
export interface TakenOrigin {
  readonly path: string
  readonly query: string
  readonly pathValues: readonly string[]
  readonly headers: CopiedHeaders
  readonly requestId: string
  /** Whoever begins it has been checked. */
  readonly identity: Identity | null
  readonly clientAddress: string
  readonly body: Buffer
}

export class TakenContext extends HttpContext {
  readonly #reply: TakenReply
  readonly #clientAddress: string

  constructor(server: ServerParts, route: CompiledRoute, taker: ReplyTaker, origin: TakenOrigin) {
    const { path, query, pathValues, headers, requestId } = origin
    const reply = new TakenReply(taker)
    super(server, route, reply, route.definition.method, path, query, pathValues, headers, requestId)
    this.#reply = reply
    this.#clientAddress = origin.clientAddress
    this.identity = origin.identity
    this.isAdmitted = true
    this.hasBody = true
    this.takeBody(origin.body, null)
  }

  override get clientAddress(): string {
    return this.#clientAddress
  }

  /** As if its client had left. */
  cancel(): void {
    this.#reply.abort()
  }

  /** The taker has room again. */
  drained(): void {
    this.#reply.drained()
  }
}
