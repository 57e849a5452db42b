/**
 * The rest of a body that is refused: read and dropped for a while, so that the client comes to read why. Closing under
 * its hands would show it a broken connection in place of the answer.
 * @source RFC 9112 section 9.6
 */
import type { GatewayError } from '../errors/gateway-error.ts'
import type { HttpContext } from './context.ts'

/** Without a byte for so long, the client is taken to wait for an answer. Milliseconds. */
const QUIET_MS = 300
/** Longest in all, milliseconds. */
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

  /** More of the body has come. @param isLast it is whole */
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
