/** The event stream of one message on its way to the client: head, events, pings and end. */
import type { ExtraHeaders, RequestContext, StreamWriter } from '#kernel'
import { type Stop, usageSoFar } from './message.ts'
import { MessageEvents, PING } from './message-events.ts'

export class MessageStream implements PingTarget {
  lastEventMs = 0
  readonly events = new MessageEvents()
  /** The client disconnected, or a hook ended the request: nothing more is sent. */
  isOver = false
  readonly #ctx: RequestContext
  readonly #pings: Pings
  readonly #headers: ExtraHeaders
  #writer: StreamWriter | null = null
  #onSilence: (() => void) | null = null

  constructor(ctx: RequestContext, pings: Pings, headers: ExtraHeaders) {
    this.#headers = headers
    this.#ctx = ctx
    this.#pings = pings
    ctx.onCancel(() => {
      this.isOver = true
      pings.remove(this)
    })
  }

  get hasBegun(): boolean {
    return this.#writer !== null
  }

  /** @param onSilence called if the stream has not begun when the first ping after the first call is due; begins it */
  await(onSilence: () => void): void {
    this.#onSilence = onSilence
    this.lastEventMs ||= performance.now()
    this.#pings.add(this)
  }

  /** Sends the head and the first event. @param model as the client names it */
  begin(model: string, inputTokens: number): void {
    this.events.start(model, usageSoFar(inputTokens))
    this.lastEventMs = performance.now()
    // Before the head, at which a hook may end the request.
    this.#pings.add(this)
    this.#writer = this.#ctx.sse(200, this.#headers)
    this.flush()
  }

  /** Sends the events that were written since the last call. */
  flush(): void {
    const events = this.events.take()
    if (events === '' || this.#writer === null) return
    this.lastEventMs = performance.now()
    this.#writer.write(events)
  }

  ping(): void {
    if (this.#writer === null) this.#onSilence?.()
    else if (!this.#ctx.flow.isHeld) this.#writer.write(PING)
  }

  end(stop: Stop, usage: Parameters<MessageEvents['end']>[1]): void {
    this.events.end(stop, usage)
    this.#pings.remove(this)
    this.#writer?.end(this.events.take())
  }

  fail(error: unknown): void {
    this.#pings.remove(this)
    this.#ctx.fail(error)
  }
}

// Pings: one timer for all streams of the thread.

export interface PingTarget {
  /** `performance.now()` of the last event, milliseconds. */
  lastEventMs: number
  ping(): void
}

/** Checks per silence interval, so that a ping is late by a quarter of it at most. */
const CHECKS = 4
const MAX_CHECK_MS = 1_000

/** Keeps silent streams alive with `ping` events. */
export class Pings {
  readonly #silenceMs: number
  readonly #targets = new Set<PingTarget>()
  #timer: NodeJS.Timeout | null = null

  /** @param silenceMs 0 disables pings */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  add(target: PingTarget): void {
    if (this.#silenceMs === 0) return
    this.#targets.add(target)
    if (this.#timer !== null) return
    const everyMs = Math.max(1, Math.min(MAX_CHECK_MS, Math.floor(this.#silenceMs / CHECKS)))
    this.#timer = setInterval(() => this.#check(), everyMs)
    this.#timer.unref()
  }

  remove(target: PingTarget): void {
    this.#targets.delete(target)
    if (this.#targets.size === 0) this.close()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #check(): void {
    const nowMs = performance.now()
    for (const target of this.#targets) {
      if (nowMs - target.lastEventMs < this.#silenceMs) continue
      target.lastEventMs = nowMs
      target.ping()
    }
  }
}
