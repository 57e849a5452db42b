/** Further attempts of one call: the workers tried so far, and the timer of the next attempt. Created with the first failure. */
import { CHOSEN_BY_HOOK } from '../balance/pick.ts'
import type { Attempt } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { PairLeg } from '../contracts/pair.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { CallParts } from './call-parts.ts'
import { nextAttemptDelayMs } from './retry.ts'

export interface RetriedCall {
  readonly call: Call
  readonly parts: CallParts
  /** Canonical. */
  readonly model: string
  readonly accepts: Call['accepts']
  /** Label of metrics. */
  readonly endpoint: string
  /** `performance.now()` of the first attempt. */
  readonly startedAtMs: number
  /** Starts the next attempt. */
  tryAgain(): void
}

/** A failed attempt that another one may follow. */
export interface RetryRequest {
  /** The attempt, or the leg of a pair, whose worker's settings apply; null if no worker could be picked. */
  readonly failed: Attempt | null
  /** 1-based. */
  readonly number: number
  /** Response headers of the worker; null without a response. */
  readonly headers: HeaderList | null
  /** The leg of a pair that failed. */
  readonly leg?: PairLeg
}

export class CallRetries {
  /** Slots of the workers tried so far. */
  readonly excluded: number[] = []
  readonly #call: RetriedCall
  #timer: NodeJS.Timeout | null = null

  constructor(call: RetriedCall) {
    this.#call = call
  }

  /** Schedules the next attempt, if the retry rules allow one. @returns true if an attempt follows */
  schedule({ failed, number, headers, leg }: RetryRequest): boolean {
    const { call, parts, endpoint, startedAtMs } = this.#call
    if (call.worker !== null) return false
    const worker = failed === null ? null : failed.worker
    const delayMs = nextAttemptDelayMs(parts.retry, {
      resilience: worker === null ? null : worker.resilience,
      headers,
      number,
      usedMs: performance.now() - startedAtMs,
      totalMs: parts.limits.totalMs(worker),
      hasAnother: () => failed !== null && this.hasAnother(failed, leg),
    })
    const workerType = worker === null ? 'regular' : worker.workerType
    if (delayMs === null) {
      if (number > 1) parts.traffic?.exhausted(workerType, endpoint)
      return false
    }
    parts.log.debug(
      { request_id: call.ctx.requestId, worker: worker?.url, attempt: number, delay_ms: delayMs },
      'retrying upstream attempt',
    )
    this.#timer = setTimeout(() => {
      parts.traffic?.retried(workerType, endpoint, number + 1, delayMs)
      this.#call.tryAgain()
    }, delayMs)
    return true
  }

  /** True if a worker that this call has not tried could take it now. */
  hasAnother({ policy, worker }: Attempt, leg?: PairLeg): boolean {
    // An onPick hook may choose the same worker again.
    if (policy === CHOSEN_BY_HOOK.policy) return false
    const { parts, model, accepts } = this.#call
    const excluded = this.excluded.concat(worker.slot)
    return parts.balance.hasUntried(model, { leg, excluded, accepts })
  }

  /** The call has ended. */
  cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }
}
