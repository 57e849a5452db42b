/**
 * With `durable`: delays the end of a response until its usage is stored. In an event stream, only the last event is
 * delayed.
 */
import type { IncomingResponse, RequestContext, RequestSlot } from '#kernel'
import type { UsageMeter } from './usage-meter.ts'

/** Last events of chat, completions and `/generate`, of Messages, and of Responses, at the beginning of a line. */
const LAST_EVENT =
  /(?:^|[\r\n])(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.(?:completed|incomplete|failed))[\r\n]|data: ?\{"type": ?"message_stop")/
const NO_BYTES = Buffer.alloc(0)

export class DurableEnd {
  readonly #meter: UsageMeter
  /** Events that are held back. */
  readonly #held: RequestSlot<Buffer>

  constructor(meter: UsageMeter, held: RequestSlot<Buffer>) {
    this.#meter = meter
    this.#held = held
  }

  /** A complete response; streams have no body here. */
  onResponse(ctx: RequestContext, { body }: IncomingResponse): Promise<void> | void {
    if (body !== null && this.#meter.count(ctx)) return this.#meter.flush()
  }

  onEvents(ctx: RequestContext, events: Buffer, isLast: boolean): Buffer | Promise<Buffer> {
    const held = this.#held.get(ctx) ?? NO_BYTES
    if (!isLast) {
      const mayEnd = held.length > 0 || LAST_EVENT.test(events.toString('latin1'))
      if (!mayEnd) return events
      this.#held.set(ctx, Buffer.concat([held, events]))
      return NO_BYTES
    }
    return this.#meter.count(ctx) ? this.#meter.flush().then(() => held) : held
  }
}
