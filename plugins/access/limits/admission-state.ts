/** What one request holds from admission to its end: reservation, queue entry, permit, slot. */
import { EventCounter, type RequestContext } from '#kernel'
import { limitsErrors } from './errors.ts'
import type { QueueEntry } from './permits/permit-queue.ts'
import type { Reservation } from './rates/tenant-limiter.ts'
import { PRIORITIES } from './scheduler/scheduler-config.ts'
import type { Preemptible, ScheduledRequest } from './scheduler/scheduler-queue.ts'

const PREEMPTED_HEADERS: readonly string[] = Object.freeze([
  'retry-after',
  '1',
  'x-weir-preempted',
  'true',
  'x-smg-preempted',
  'true',
])

/** Counts the events of a streamed response. */
export class ResponseEvents {
  count = 0
  readonly #counter = new EventCounter()

  push(chunk: Buffer): void {
    this.count += this.#counter.push(chunk)
  }
}

export class AdmissionState implements Preemptible {
  reservation: Reservation | null = null
  /** Events of the response so far; null if no token limit applies. */
  events: ResponseEvents | null = null
  /** Rate limits from which a request was taken. */
  ratesTaken = 0
  /** True while control is asked for tokens. */
  isAsking = false
  /** Set while the request waits. */
  queueEntry: QueueEntry | null = null
  hasPermit = false
  scheduled: ScheduledRequest | null = null
  isOver = false
  readonly #ctx: RequestContext

  constructor(ctx: RequestContext) {
    this.#ctx = ctx
  }

  isPreemptible(): boolean {
    return this.#ctx.firstByteAtMs === 0 && !this.#ctx.isDone
  }

  preempt(by: number): void {
    this.#ctx.fail(limitsErrors.scheduler_preempted.with({ headers: PREEMPTED_HEADERS }, PRIORITIES[by]))
  }
}
