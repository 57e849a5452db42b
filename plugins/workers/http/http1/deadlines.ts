/**
 * @hot Time limits of open exchanges without a timer each: one linked list per thread, looked through by one coarse
 * interval that runs only while exchanges are open.
 *
 * Limits fire late, by up to two ticks, never early. The clock stands still while the event loop is blocked, so that a
 * busy gateway does not blame its workers for bytes that it was too busy to read.
 */
import type { UpstreamFailureKind } from '#kernel'

/** Distance of two looks at the list, in milliseconds. */
const TICK_MS = 100
/** More than this between two ticks is the event loop's delay and counts for nobody. */
const MAX_STEP_MS = 2 * TICK_MS

/** The limits that can run out. */
export type DeadlineKind = Extract<
  UpstreamFailureKind,
  'connect' | 'first_byte_timeout' | 'idle_timeout' | 'request_timeout'
>

/** What an exchange carries for its limits. All times are of the list's own clock, in milliseconds. */
export abstract class TimedExchange {
  /** Neighbours in the list; only the list touches them. */
  nextOpen: TimedExchange | null = null
  previousOpen: TimedExchange | null = null
  phase: DeadlineKind = 'connect'
  /** 0: this phase may last as long as it likes. */
  phaseLimitMs = 0
  phaseSinceMs = 0
  endsAtMs = 0
  /** While true only the connect and the request limit count. */
  isResting = false

  /** A limit has run out. The exchange must leave the list. */
  abstract onDeadline(kind: DeadlineKind): void
}

export class Deadlines {
  /** What activity is stamped with: no earlier than now, so that no limit fires early. */
  stampMs = TICK_MS
  private clockMs = 0
  private lastTickMs = 0
  private first: TimedExchange | null = null
  /** Next exchange to look at while a tick goes through the list. */
  private cursor: TimedExchange | null = null
  private timer: NodeJS.Timeout | null = null
  private readonly onTick = () => this.tick()

  /** Begins to watch an exchange. @param requestMs limit of the whole exchange, 0 for none */
  watch(exchange: TimedExchange, requestMs: number): void {
    exchange.endsAtMs = requestMs === 0 ? Number.POSITIVE_INFINITY : this.stampMs + requestMs
    exchange.nextOpen = this.first
    if (this.first !== null) this.first.previousOpen = exchange
    this.first = exchange
    if (this.timer === null) this.startTimer()
  }

  unwatch(exchange: TimedExchange): void {
    const next = exchange.nextOpen
    const previous = exchange.previousOpen
    if (this.cursor === exchange) this.cursor = next
    if (next !== null) next.previousOpen = previous
    if (previous !== null) previous.nextOpen = next
    else if (this.first === exchange) this.first = next
    exchange.nextOpen = null
    exchange.previousOpen = null
  }

  /** The exchange waits for something else now. @param limitMs 0 for no limit */
  enterPhase(exchange: TimedExchange, phase: DeadlineKind, limitMs: number): void {
    exchange.phase = phase
    exchange.phaseLimitMs = limitMs
    exchange.phaseSinceMs = this.stampMs
  }

  /** Any exchange that is still watched; null when there is none. */
  get anyWatched(): TimedExchange | null {
    return this.first
  }

  private startTimer(): void {
    this.lastTickMs = performance.now()
    this.timer = setInterval(this.onTick, TICK_MS)
    this.timer.unref()
  }

  private tick(): void {
    if (this.first === null) {
      if (this.timer !== null) clearInterval(this.timer)
      this.timer = null
      return
    }
    const nowMs = performance.now()
    this.clockMs += Math.min(nowMs - this.lastTickMs, MAX_STEP_MS)
    this.lastTickMs = nowMs
    this.stampMs = this.clockMs + TICK_MS
    let exchange: TimedExchange | null = this.first
    while (exchange !== null) {
      this.cursor = exchange.nextOpen
      this.check(exchange)
      exchange = this.cursor
    }
    this.cursor = null
  }

  private check(exchange: TimedExchange): void {
    if (this.clockMs >= exchange.endsAtMs) {
      exchange.onDeadline('request_timeout')
    } else if (
      exchange.phaseLimitMs !== 0 &&
      this.clockMs - exchange.phaseSinceMs >= exchange.phaseLimitMs &&
      !(exchange.isResting && exchange.phase !== 'connect')
    ) {
      exchange.onDeadline(exchange.phase)
    }
  }
}
