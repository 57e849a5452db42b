/** Schedules the attempt that follows a failed one, if one may: at the same target, or at the next target of a virtual model. */
import { CHOSEN_BY_HOOK } from '../balance/pick.ts'
import type { Attempt } from '../balance/worker-balance.ts'
import type { TargetFailure } from '../contracts/model-targets.ts'
import type { PairLeg } from '../contracts/pair.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { headerOf } from '../wire/headers.ts'
import type { CallTarget } from './call-target.ts'
import { backOffMs, retryAfterMs, whenRoom } from './retry.ts'
import type { SendingCall } from './send-attempt.ts'

/** What a worker has done to the request: failed, rejected the gateway's credentials, or had no room for it. */
type RetryCause = 'failed' | 'rejected' | 'full'

/** The call as its next attempt needs it. */
export interface RepeatedCall extends SendingCall {
  /** Label of metrics. */
  readonly endpoint: string
  /** `performance.now()` of the first attempt. */
  readonly startedAtMs: number
  /** Null unless the call names a virtual model. */
  readonly target: CallTarget | null
  /** 1-based number of the attempt at the current target. */
  readonly attemptNumber: number
  /** Starts the next attempt. */
  tryAgain(): void
}

export class NextAttempt {
  /** Slots of the workers tried so far. */
  readonly excluded: number[] = []
  readonly #call: RepeatedCall
  /** Cancels the next attempt; null if none is scheduled. */
  #cancel: (() => void) | null = null

  constructor(call: RepeatedCall) {
    this.#call = call
  }

  /**
   * @param failed the attempt, or the failed leg of a pair, whose worker's settings apply; null if no worker could be picked
   * @param headers of the worker's response; null without one
   * @returns true if another attempt follows; then the caller ends the failed one
   */
  schedule(
    failed: Attempt | null,
    headers: HeaderList | null,
    cause: RetryCause = 'failed',
    leg?: PairLeg,
  ): boolean {
    const reason = headers === null ? 'failure' : 'status'
    return this.#retry(failed, headers, cause, leg) || this.giveUpTarget(reason, failed)
  }

  /** Schedules an attempt at the same target, if the retry rules allow one. */
  #retry(
    failed: Attempt | null,
    headers: HeaderList | null,
    cause: RetryCause,
    leg: PairLeg | undefined,
  ): boolean {
    const { call, parts, endpoint, attemptNumber: number } = this.#call
    if (call.worker !== null) return false
    const worker = failed === null ? null : failed.worker
    const isLast = cause !== 'failed' && (failed === null || !this.hasAnother(failed, leg))
    // The same worker would reject the same credentials again.
    const delayMs = isLast && cause === 'rejected' ? null : this.#delayMs(failed, headers, leg)
    const workerType = worker === null ? 'regular' : worker.workerType
    if (delayMs === null) {
      if (number > 1) parts.traffic?.exhausted(workerType, endpoint)
      return false
    }
    parts.log.debug(
      { request_id: call.ctx.requestId, worker: worker?.url, attempt: number, delay_ms: delayMs },
      'retrying upstream attempt',
    )
    const tryAgain = () => {
      parts.traffic?.retried(workerType, endpoint, number + 1, delayMs)
      this.#call.tryAgain()
    }
    if (isLast && worker !== null) this.#cancel = this.#whenRoom(worker, tryAgain)
    else {
      const timer = setTimeout(tryAgain, delayMs)
      this.#cancel = () => clearTimeout(timer)
    }
    return true
  }

  #whenRoom(worker: WorkerEntry, tryAgain: () => void): () => void {
    const { parts, startedAtMs } = this.#call
    const totalMs = parts.limits.totalMs(worker)
    const endsAtMs = totalMs === 0 ? Number.POSITIVE_INFINITY : startedAtMs + totalMs
    const { maxBackoffMs } = parts.retry.of(worker.resilience)
    return whenRoom(
      parts.balance,
      worker.slot,
      Math.min(performance.now() + maxBackoffMs, endsAtMs),
      tryAgain,
    )
  }

  /**
   * @returns delay before the next attempt in milliseconds; null for none: attempts or time are used up, or the worker asks
   *   for a longer delay than `maxWaitMs`, or the stream would open before, and there is no other worker
   */
  #delayMs(failed: Attempt | null, headers: HeaderList | null, leg: PairLeg | undefined): number | null {
    const { call, parts, startedAtMs, attemptNumber } = this.#call
    const worker = failed === null ? null : failed.worker
    // Of the kernel if no worker could be picked.
    const settings = parts.retry.of(worker === null ? null : worker.resilience)
    if (attemptNumber >= settings.maxAttempts) return null
    // Set by workers that know that the same request would fail again.
    if (headers !== null && headerOf(headers, 'x-should-retry') === 'false') return null
    const askedMs = headers === null ? 0 : retryAfterMs(headerOf(headers, 'retry-after'), Date.now())
    if (askedMs > settings.maxWaitMs) return failed !== null && this.hasAnother(failed, leg) ? 0 : null
    const delayMs = backOffMs(settings, attemptNumber, askedMs, Math.random)
    const { opensAtMs, firstByteAtMs } = call.ctx
    // A stream that opened meanwhile could not show the status and the Retry-After of the worker.
    if (opensAtMs !== 0 && firstByteAtMs === 0 && performance.now() + delayMs >= opensAtMs)
      return failed !== null && this.hasAnother(failed, leg) ? 0 : null
    const totalMs = parts.limits.totalMs(worker)
    return totalMs === 0 || performance.now() - startedAtMs + delayMs < totalMs ? delayMs : null
  }

  /** True if a worker that this call has not tried could take it now. */
  hasAnother({ policy, worker }: Attempt, leg?: PairLeg): boolean {
    // An onPick hook may choose the same worker again.
    if (policy === CHOSEN_BY_HOOK.policy) return false
    const { parts, model, accepts } = this.#call
    const excluded = this.excluded.concat(worker.slot)
    return parts.balance.hasUntried(model, { leg, excluded, accepts })
  }

  /** @returns true if an attempt at the next target of the virtual model follows */
  giveUpTarget(reason: TargetFailure, failed: Attempt | null): boolean {
    const { target, parts, startedAtMs } = this.#call
    if (target === null) return false
    const totalMs = parts.limits.totalMs(failed?.worker ?? null)
    if (totalMs !== 0 && performance.now() - startedAtMs >= totalMs) return false
    if (!target.giveUp(reason)) return false
    this.soon()
    return true
  }

  /** Starts it in the next turn. */
  soon(): void {
    setImmediate(() => {
      if (!this.#call.isOver) this.#call.tryAgain()
    })
  }

  cancel(): void {
    this.#cancel?.()
  }
}
