/** One request from admission to its end: what it holds, so that all of it is given back exactly once. */
import type { RequestContext } from '#kernel'
import { limitsErrors } from './errors.ts'
import { PRIORITIES } from './scheduler-config.ts'
import type { Preemptible, ScheduledRequest } from './scheduler-queue.ts'
import type { Reservation } from './tenant-limiter.ts'
import type { ReplyUsage } from './usage.ts'
import type { Waiting } from './waiting.ts'

const PREEMPTED_HEADERS: readonly string[] = Object.freeze([
  'retry-after',
  '1',
  'x-weir-preempted',
  'true',
  'x-smg-preempted',
  'true',
])

export class Stay implements Preemptible {
  reservation: Reservation | null = null
  /** Of the reply, where token limits need it. */
  usage: ReplyUsage | null = null
  /** The request waits for its turn. */
  waiting: Waiting | null = null
  /** It holds a permit of the gate. */
  hasPermit = false
  /** Its turn at the scheduler. */
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
