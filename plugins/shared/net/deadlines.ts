/**
 * @hot Timeouts of open exchanges without a timer each: one linked list per thread, checked by one coarse interval that
 * runs only while exchanges are open.
 *
 * Timeouts fire up to two ticks late, never early. The clock stops while the event loop is blocked, so that a busy gateway
 * does not blame its workers for bytes that it had no time to read.
 */
import { Interval, type UpstreamFailureKind } from '#kernel'

/** Interval of checks, milliseconds. */
const TICK_MS = 100
/** Longer steps are event loop delay and do not count. */
const MAX_STEP_MS = 2 * TICK_MS

/** Timeouts of an exchange. */
export type DeadlineKind = Extract<
  UpstreamFailureKind,
  'connect' | 'first_byte_timeout' | 'idle_timeout' | 'request_timeout'
>

/** Timeout state of an exchange. Times are milliseconds of the list's own clock. */
export abstract class TimedExchange {
  /** Neighbours in the list, maintained by the list. */
  nextOpen: TimedExchange | null = null
  previousOpen: TimedExchange | null = null
  phase: DeadlineKind = 'connect'
  /** 0: no limit for this phase. */
  phaseLimitMs = 0
  phaseSinceMs = 0
  endsAtMs = 0
  /** While true only the connect and request limits apply. */
  isResting = false

  /** A timeout passed. The exchange must call `unwatch`. */
  abstract onDeadline(kind: DeadlineKind): void
}

export class Deadlines {
  /** Timestamp for activity: never earlier than now, so that no timeout fires early. */
  stampMs = TICK_MS
  private clockMs = 0
  private lastTickMs = 0
  private first: TimedExchange | null = null
  /** Next exchange to check during a tick. */
  private cursor: TimedExchange | null = null
  private readonly interval = new Interval(TICK_MS, () => this.tick())

  /** Adds an exchange. @param requestMs limit of the whole exchange, 0 for none */
  watch(exchange: TimedExchange, requestMs: number): void {
    exchange.endsAtMs = requestMs === 0 ? Number.POSITIVE_INFINITY : this.stampMs + requestMs
    exchange.nextOpen = this.first
    if (this.first !== null) this.first.previousOpen = exchange
    this.first = exchange
    if (this.interval.start()) this.lastTickMs = performance.now()
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

  /** Starts the timeout of another phase. @param limitMs 0 for no limit */
  enterPhase(exchange: TimedExchange, phase: DeadlineKind, limitMs: number): void {
    exchange.phase = phase
    exchange.phaseLimitMs = limitMs
    exchange.phaseSinceMs = this.stampMs
  }

  /** Any watched exchange; null if there is none. */
  get anyWatched(): TimedExchange | null {
    return this.first
  }

  private tick(): void {
    if (this.first === null) {
      this.interval.stop()
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
