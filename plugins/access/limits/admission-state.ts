/** What one request holds from admission to its end: reservation, queue entry, permit, slot. */
import type { RequestContext } from '#kernel'
import { limitsErrors } from './errors.ts'
import type { QueueEntry } from './permits/permit-queue.ts'
import type { ResponseUsage } from './rates/response-usage.ts'
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

export class AdmissionState implements Preemptible {
  reservation: Reservation | null = null
  /** Set if a token limit applies. */
  usage: ResponseUsage | null = null
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
