/** The Server-Timing header: durations until the start of the response. @source W3C Server Timing, section 3 */
import type { Host, IncomingResponse, RequestContext, RequestSlot } from '#kernel'

export const ASK_HEADER = 'x-weir-server-timing'

interface Sent {
  readonly firstAtMs: number
  lastAtMs: number
  count: number
}

export class ServerTiming {
  readonly #sent: RequestSlot<Sent>
  readonly #isAlways: boolean

  constructor(host: Host, isAlways: boolean) {
    this.#sent = host.slot()
    this.#isAlways = isAlways
  }

  /** Call before an attempt is sent. */
  noteAttempt(ctx: RequestContext): void {
    const nowMs = performance.now()
    const sent = this.#sent.get(ctx)
    if (sent === undefined) this.#sent.set(ctx, { firstAtMs: nowMs, lastAtMs: nowMs, count: 1 })
    else {
      sent.lastAtMs = nowMs
      sent.count++
    }
  }

  /**
   * Milliseconds: `gateway` until the first attempt, `retries` from there to the last attempt, `upstream` from there to
   * the response headers, `total` overall.
   */
  addHeader(ctx: RequestContext, response: IncomingResponse): void {
    if (!this.#isAlways && ctx.header(ASK_HEADER) !== '1') return
    const nowMs = performance.now()
    const sent = this.#sent.get(ctx)
    const parts = [entry('total', nowMs - ctx.startedAtMs)]
    if (sent !== undefined) {
      parts.unshift(entry('gateway', sent.firstAtMs - ctx.startedAtMs))
      if (sent.count > 1) parts.push(entry('retries', sent.lastAtMs - sent.firstAtMs))
      parts.push(entry('upstream', nowMs - sent.lastAtMs))
    }
    response.headers.push('server-timing', parts.join(', '))
  }
}

function entry(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(2)}`
}
