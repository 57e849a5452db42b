/**
 * Reads and discards the rest of a rejected body for a limited time, so that the client can read the error response:
 * closing while it sends would reset the connection.
 * @source RFC 9112 section 9.6
 */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { HttpContext } from './context.ts'

/** A client that sends nothing for this long is assumed to wait for the response. Milliseconds. */
const QUIET_MS = 300
/** Longest time in total, milliseconds. */
const MAX_MS = 5_000

export class RefusedBody {
  readonly #ctx: HttpContext
  readonly #error: GatewayError
  readonly #endsAtMs = performance.now() + MAX_MS
  #timer: NodeJS.Timeout | null = null

  constructor(ctx: HttpContext, error: GatewayError) {
    this.#ctx = ctx
    this.#error = error
    ctx.isReceiving = true
    this.#wait()
  }

  /** More of the body has arrived. @param isLast it is complete */
  drop(isLast: boolean): void {
    if (isLast || performance.now() >= this.#endsAtMs) this.#refuse()
    else this.#wait()
  }

  #wait(): void {
    if (this.#timer !== null) this.#timer.refresh()
    else this.#timer = setTimeout(() => this.#refuse(), QUIET_MS)
  }

  #refuse(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const ctx = this.#ctx
    if (ctx.isDone || ctx.isFailing) return
    ctx.isReceiving = false
    ctx.sink.closesConnection = true
    ctx.fail(this.#error)
  }
}
