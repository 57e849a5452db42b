/**
 * Decides what follows a failed attempt of a call: an attempt on another worker, one at the next target of a virtual model,
 * or an error. Reports the failure to the breaker and keeps what the worker sent. Created with the first failure at a target.
 */

import { CHOSEN_BY_HOOK } from '../balance/pick.ts'
import type { Attempt, Fault } from '../balance/worker-balance.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { TargetFailure } from '../contracts/model-targets.ts'
import type { LegFault, PairLeg } from '../contracts/pair.ts'
import type { CallWatch } from '../contracts/traffic.ts'
import type { Exchange, HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { headerOf } from '../wire/headers.ts'
import { isContextOverflow, isContextOverflowBody } from '../wire/worker-message.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import { CallFaults } from './call-faults.ts'
import type { CallTarget } from './call-target.ts'
import type { PairAttempt } from './pair-attempt.ts'
import { backOffMs, retryAfterMs, whenRoom } from './retry.ts'
import type { SendingCall } from './send-attempt.ts'
import { logExhaustion, toLocalFailure, toUpstreamError, upstreamErrors } from './upstream-errors.ts'

const BAD_REQUEST = 400
const NOT_FOUND = 404
const SERVER_ERROR = 500

/** What a worker has done to the request: failed, rejected the gateway's credentials, or had no room for it. */
type RetryCause = 'failed' | 'rejected' | 'full'

/** The call whose attempt has failed. */
export interface FailingCall extends SendingCall {
  /** Label of metrics. */
  readonly endpoint: string
  /** `performance.now()` of the first attempt. */
  readonly startedAtMs: number
  /** Null unless the call names a virtual model. */
  readonly target: CallTarget | null
  /** Status of the response that is passed on; 0 before it, and again if its head was not passed on. */
  status: number
  /** Null between attempts. */
  readonly attempt: Attempt | null
  /** 1-based number of the attempt at the current target. */
  readonly attemptNumber: number
  readonly exchange: Exchange | null
  /** Null without a traffic observer. */
  readonly meter: CallWatch | null
  /** Null without onAttempt hooks. */
  readonly notes: AttemptNotes | null
  /** Reads the rest of a response without passing it on, or aborts its exchange if it is long. */
  discardResponse(contentLength: number): void
  /** Releases the worker of the attempt. */
  endAttempt(outcome: AttemptReport['outcome']): void
  /** Starts the next attempt. */
  tryAgain(): void
}

export class AttemptFailures {
  readonly faults: CallFaults
  /** Slots of the workers tried so far. */
  readonly excluded: number[] = []
  readonly #call: FailingCall
  /** Cancels the next attempt; null if none is scheduled. */
  #cancelRetry: (() => void) | null = null

  constructor(call: FailingCall) {
    this.#call = call
    this.faults = new CallFaults(call.call, call.model, call.parts)
  }

  /** No worker could be picked, or the request could not be built. */
  notSent(error: unknown): void {
    const { attempt } = this.#call
    if (attempt !== null && this.#isForOthers(attempt)) {
      this.#abandon(attempt)
      this.#soon()
      return
    }
    const isPickError = attempt === null && error instanceof GatewayError
    if (
      isPickError &&
      (error.status >= 500 || error.code === 'model_not_found') &&
      this.#giveUpTarget('no_worker', null)
    )
      return
    if (!isPickError || !error.isRetryable || !this.#scheduleNext(null, null)) this.#call.giveUp(error)
  }

  /** True if the call accepts the worker no more, whose format cannot express the request, and there is another one. */
  #isForOthers(attempt: Attempt): boolean {
    const { accepts } = this.#call
    return accepts !== null && !accepts(attempt.worker) && this.#hasAnother(attempt)
  }

  /** A response with a status of 400 or above. @returns false if it is to be passed on; true if another attempt or an error follows */
  answered(status: number, headers: HeaderList, contentLength: number): boolean {
    const { attempt, parts, notes } = this.#call
    if (attempt === null) return false
    if (status === NOT_FOUND && this.#tryAfterNotFound(attempt)) return true
    const isRejected = this.faults.isRejected(attempt.worker, status)
    if (!isRejected && !parts.retry.isFailure(status, attempt.worker.resilience)) return false
    this.faults.answered(attempt.worker, status, notes)
    if (status === SERVER_ERROR && this.faults.repeats(attempt.worker)) return false
    if (!this.#scheduleNext(attempt, isRejected ? null : headers, isRejected ? 'rejected' : 'failed')) {
      if (isRejected) this.fail(upstreamErrors.worker_credentials_rejected())
      return isRejected
    }
    this.#blame(attempt, 'answered', status)
    this.#abandon(attempt)
    this.#call.discardResponse(contentLength)
    return true
  }

  /** @param body of a response with status 400. @returns true if the prompt is too long and the next target follows */
  refused(body: Buffer): boolean {
    const { attempt } = this.#call
    if (attempt === null || !isContextOverflowBody(body)) return false
    if (!this.#giveUpTarget('context_length', attempt)) return false
    attempt.succeeded()
    this.#abandon(attempt)
    return true
  }

  /** As `refused`, for an attempt that ended in an error. */
  #isPromptTooLong(attempt: Attempt, { status, code, message: text }: GatewayError): boolean {
    const { target } = this.#call
    if (status !== BAD_REQUEST || target === null || !target.mayTryLongerContext) return false
    return isContextOverflow({ code, text }) && this.#giveUpTarget('context_length', attempt)
  }

  /** Tries another worker after a 404 of a worker that lists the model, and else the next target of a virtual model. @returns false if the 404 is to be passed on */
  #tryAfterNotFound(attempt: Attempt): boolean {
    const { call, model, exchange } = this.#call
    const { worker } = attempt
    if (call.mayLackRoute === true) return false
    const listsModel = worker.models.some(({ id }) => id === model)
    if (listsModel && this.#hasAnother(attempt)) {
      if (!this.#scheduleNext(attempt, null)) return false
    } else if (!this.#giveUpTarget('status', attempt)) return false
    this.faults.suspect(worker)
    this.#abandon(attempt)
    exchange?.abort()
    return true
  }

  /** A response that is no answer of an engine, whatever its status. */
  unusable(fault: 'stream' | 'page', status: number): void {
    const { attempt, notes } = this.#call
    if (attempt === null) return
    this.faults.misconfigured(attempt.worker, fault, status)
    this.faults.unusable(attempt.worker, status, notes)
    if (this.tryElsewhere()) return
    this.fail(
      fault === 'stream' ? upstreamErrors.worker_not_streaming() : upstreamErrors.worker_answered_page(),
    )
  }

  /** Counts a failure of the worker; a 500 only if no other worker repeats it. */
  #blame(attempt: Attempt, fault: Fault, status: number | undefined): void {
    if (status === SERVER_ERROR && this.#hasAnother(attempt)) this.faults.doubt(attempt.worker)
    else this.faults.blame(attempt, fault)
  }

  /** As `OpenCall.tryElsewhere`. */
  tryElsewhere(): boolean {
    const { attempt, call, status, isOver, notes, exchange } = this.#call
    if (isOver || attempt === null || !this.#scheduleNext(attempt, null)) return false
    if (status !== 0) this.faults.unusable(attempt.worker, status, notes)
    this.faults.blame(attempt, 'answered')
    this.#abandon(attempt)
    exchange?.abort()
    // A stream whose head is kept continues at the next worker.
    if (call.keepsHead !== true) this.#call.status = 0
    return true
  }

  /** The exchange of an attempt has failed, before or during the response. */
  exchangeFailed(attempt: Attempt, failure: UpstreamFailure): void {
    const { call, parts, notes, status } = this.#call
    const local = toLocalFailure(failure)
    if (local !== null) {
      this.#failedLocally(attempt, local, notes)
      return
    }
    this.#noteFailure(attempt.worker, failure, notes)
    const { error } = failure
    const isRejected = error !== null && this.faults.isRejected(attempt.worker, error.status)
    if (!isRejected) this.#logFailure(attempt.worker, failure)
    // A failure with an error of its own counts by its status; any other is the worker's failure.
    const isFailure =
      isRejected || error === null || parts.retry.isFailure(error.status, attempt.worker.resilience)
    const isFull = failure.kind === 'full'
    const isRepeated = error?.status === SERVER_ERROR && this.faults.repeats(attempt.worker)
    if (!isFailure) attempt.refused()
    else if (!isFull && !isRepeated) this.#blame(attempt, toFault(failure), error?.status)
    const cause = isFull ? 'full' : isRejected ? 'rejected' : 'failed'
    const isRetryable = !isRepeated && (isRejected || error === null || error.isRetryable)
    const isUnanswered = status === 0 ? !failure.responseStarted : call.keepsHead === true
    const mayTryElsewhere = isUnanswered && isRetryable
    if (mayTryElsewhere && isFailure && this.#scheduleNext(attempt, null, cause)) this.#abandon(attempt)
    else if (isUnanswered && error !== null && this.#isPromptTooLong(attempt, error)) this.#abandon(attempt)
    else if (isRejected)
      this.#call.giveUp(upstreamErrors.worker_credentials_rejected.with({ cause: failure }))
    else this.#call.giveUp(toUpstreamError(failure, status !== 0))
  }

  /** One worker of a pair has failed. */
  legFailed(attempt: PairAttempt, fault: LegFault): void {
    const { parts, meter, notes: decodeNotes, status } = this.#call
    const leg = attempt.leg(fault.leg)
    const notes = fault.leg === 'prefill' ? attempt.prefillNotes : decodeNotes
    const local = fault.failure === null ? null : toLocalFailure(fault.failure)
    if (local !== null) {
      this.#failedLocally(leg, local, notes)
      return
    }
    if (fault.failure !== null) {
      this.#noteFailure(leg.worker, fault.failure, notes)
      this.#logFailure(leg.worker, fault.failure)
    } else {
      meter?.answered(fault.status)
      if (fault.leg === 'decode') decodeNotes?.answered(fault.status)
      this.faults.answered(leg.worker, fault.status, notes)
    }
    const { resilience } = leg.worker
    const isRejected = this.faults.isRejected(leg.worker, fault.status)
    const isFailure = isRejected || fault.failure !== null || parts.retry.isFailure(fault.status, resilience)
    if (isFailure) this.faults.blame(leg, fault.failure === null ? 'answered' : toFault(fault.failure))
    else leg.refused()
    const headers = isRejected ? null : fault.headers
    const cause = isRejected ? 'rejected' : 'failed'
    if (status === 0 && isFailure && this.#scheduleNext(leg, headers, cause, fault.leg)) this.#abandon(leg)
    else if (status === 0 && this.#isPromptTooLong(leg, fault.error)) this.#abandon(leg)
    else this.#call.giveUp(isRejected ? upstreamErrors.worker_credentials_rejected() : fault.error)
  }

  /** Not reported to the breaker. Another attempt may succeed after a delay, or on a worker with an open connection. */
  #failedLocally(attempt: Attempt, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    const { parts, status } = this.#call
    logExhaustion(parts.log, failure.message)
    if (notes !== null) notes.failure = failure.kind
    if (status === 0 && !failure.responseStarted && this.#scheduleNext(attempt, null)) this.#abandon(attempt)
    else this.#call.giveUp(toUpstreamError(failure, status !== 0))
  }

  /** Ends the call with an error. One that another worker might avoid counts as a failure of this one. */
  fail(error: unknown): void {
    const { attempt, status, notes } = this.#call
    if (attempt !== null && error instanceof GatewayError && error.isRetryable) {
      if (status !== 0) this.faults.unusable(attempt.worker, status, notes)
      this.faults.blame(attempt, 'answered')
    }
    this.#call.giveUp(error)
  }

  #noteFailure(worker: WorkerEntry, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    const { meter, status } = this.#call
    meter?.failed(worker, failure, status)
    this.faults.failed(worker, failure, notes)
  }

  #logFailure(worker: WorkerEntry, failure: UpstreamFailure): void {
    const { call, parts } = this.#call
    parts.log.warn(
      { request_id: call.ctx.requestId, worker: worker.url, failure: failure.kind, reason: failure.message },
      'upstream attempt failed',
    )
  }

  /**
   * @param failed the attempt, or the failed leg of a pair, whose worker's settings apply; null if no worker could be picked
   * @param headers of the worker's response; null without one
   * @returns true if another attempt follows; then the caller ends the failed one
   */
  #scheduleNext(
    failed: Attempt | null,
    headers: HeaderList | null,
    cause: RetryCause = 'failed',
    leg?: PairLeg,
  ): boolean {
    const reason = headers === null ? 'failure' : 'status'
    return this.#retry(failed, headers, cause, leg) || this.#giveUpTarget(reason, failed)
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
    const isLast = cause !== 'failed' && (failed === null || !this.#hasAnother(failed, leg))
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
    if (isLast && worker !== null) this.#cancelRetry = this.#whenRoom(worker, tryAgain)
    else {
      const timer = setTimeout(tryAgain, delayMs)
      this.#cancelRetry = () => clearTimeout(timer)
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
    if (askedMs > settings.maxWaitMs) return failed !== null && this.#hasAnother(failed, leg) ? 0 : null
    const delayMs = backOffMs(settings, attemptNumber, askedMs, Math.random)
    const { opensAtMs, firstByteAtMs } = call.ctx
    // A stream that opened meanwhile could not show the status and the Retry-After of the worker.
    if (opensAtMs !== 0 && firstByteAtMs === 0 && performance.now() + delayMs >= opensAtMs)
      return failed !== null && this.#hasAnother(failed, leg) ? 0 : null
    const totalMs = parts.limits.totalMs(worker)
    return totalMs === 0 || performance.now() - startedAtMs + delayMs < totalMs ? delayMs : null
  }

  /** True if a worker that this call has not tried could take it now. */
  #hasAnother({ policy, worker }: Attempt, leg?: PairLeg): boolean {
    // An onPick hook may choose the same worker again.
    if (policy === CHOSEN_BY_HOOK.policy) return false
    const { parts, model, accepts } = this.#call
    const excluded = this.excluded.concat(worker.slot)
    return parts.balance.hasUntried(model, { leg, excluded, accepts })
  }

  /** No further attempt at this target follows. */
  end(): void {
    this.#cancelRetry?.()
    this.faults.ended()
  }

  /** @returns true if an attempt at the next target of the virtual model follows */
  #giveUpTarget(reason: TargetFailure, failed: Attempt | null): boolean {
    const { target, parts, startedAtMs } = this.#call
    if (target === null) return false
    const totalMs = parts.limits.totalMs(failed?.worker ?? null)
    if (totalMs !== 0 && performance.now() - startedAtMs >= totalMs) return false
    if (!target.giveUp(reason)) return false
    this.#soon()
    return true
  }

  #soon(): void {
    setImmediate(() => {
      if (!this.#call.isOver) this.#call.tryAgain()
    })
  }

  /** Ends the attempt in favour of the next. @param failed the attempt, or the failed leg of a pair */
  #abandon(failed: Attempt): void {
    this.excluded.push(failed.worker.slot)
    this.#call.endAttempt('retried')
  }
}

function toFault({ kind }: UpstreamFailure): Fault {
  if (kind === 'refused') return 'answered'
  return kind === 'connect' ? 'unreachable' : 'silent'
}
