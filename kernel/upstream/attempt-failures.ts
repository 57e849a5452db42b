/**
 * Decides by the kind of a failure what follows a failed attempt of a call: another attempt, an error, or the response as it
 * is. Reports the failure to the breaker and keeps what the worker sent. Created with the first failure at a target.
 */
import type { Attempt, Fault } from '../balance/worker-balance.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { LegFault } from '../contracts/pair.ts'
import type { CallWatch } from '../contracts/traffic.ts'
import type { Exchange, HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { isContextOverflow, isContextOverflowBody } from '../wire/worker-message.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import { CallFaults } from './call-faults.ts'
import { NextAttempt, type RepeatedCall } from './next-attempt.ts'
import type { PairAttempt } from './pair-attempt.ts'
import { logExhaustion, toLocalFailure, toUpstreamError, upstreamErrors } from './upstream-errors.ts'

const BAD_REQUEST = 400
const NOT_FOUND = 404
const SERVER_ERROR = 500

/** The call whose attempt has failed. */
export interface FailingCall extends RepeatedCall {
  /** Status of the response that is passed on; 0 before it, and again if its head was not passed on. */
  status: number
  /** Null between attempts. */
  readonly attempt: Attempt | null
  readonly exchange: Exchange | null
  /** Null without a traffic observer. */
  readonly meter: CallWatch | null
  /** Null without onAttempt hooks. */
  readonly notes: AttemptNotes | null
  /** Reads the rest of a response without passing it on, or aborts its exchange if it is long. */
  discardResponse(contentLength: number): void
  /** Releases the worker of the attempt. */
  endAttempt(outcome: AttemptReport['outcome']): void
}

export class AttemptFailures {
  readonly faults: CallFaults
  readonly #call: FailingCall
  readonly #next: NextAttempt

  constructor(call: FailingCall) {
    this.#call = call
    this.#next = new NextAttempt(call)
    this.faults = new CallFaults(call.call, call.model, call.parts)
  }

  /** Slots of the workers tried so far. */
  get excluded(): readonly number[] {
    return this.#next.excluded
  }

  /** No worker could be picked, or the request could not be built. */
  notSent(error: unknown): void {
    const { attempt } = this.#call
    if (attempt !== null && this.#isForOthers(attempt)) {
      this.#abandon(attempt)
      this.#next.soon()
      return
    }
    const isPickError = attempt === null && error instanceof GatewayError
    if (
      isPickError &&
      (error.status >= 500 || error.code === 'model_not_found') &&
      this.#next.giveUpTarget('no_worker', null)
    )
      return
    if (!isPickError || !error.isRetryable || !this.#next.schedule(null, null)) this.#call.giveUp(error)
  }

  /** True if the call accepts the worker no more, whose format cannot express the request, and there is another one. */
  #isForOthers(attempt: Attempt): boolean {
    const { accepts } = this.#call
    return accepts !== null && !accepts(attempt.worker) && this.#next.hasAnother(attempt)
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
    if (!this.#next.schedule(attempt, isRejected ? null : headers, isRejected ? 'rejected' : 'failed')) {
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
    if (!this.#next.giveUpTarget('context_length', attempt)) return false
    attempt.succeeded()
    this.#abandon(attempt)
    return true
  }

  /** As `refused`, for an attempt that ended in an error. */
  #isPromptTooLong(attempt: Attempt, { status, code, message: text }: GatewayError): boolean {
    const { target } = this.#call
    if (status !== BAD_REQUEST || target === null || !target.mayTryLongerContext) return false
    return isContextOverflow({ code, text }) && this.#next.giveUpTarget('context_length', attempt)
  }

  /** Tries another worker after a 404 of a worker that lists the model, and else the next target of a virtual model. @returns false if the 404 is to be passed on */
  #tryAfterNotFound(attempt: Attempt): boolean {
    const { call, model, exchange } = this.#call
    const { worker } = attempt
    if (call.mayLackRoute === true) return false
    const listsModel = worker.models.some(({ id }) => id === model)
    if (listsModel && this.#next.hasAnother(attempt)) {
      if (!this.#next.schedule(attempt, null)) return false
    } else if (!this.#next.giveUpTarget('status', attempt)) return false
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
    if (status === SERVER_ERROR && this.#next.hasAnother(attempt)) this.faults.doubt(attempt.worker)
    else this.faults.blame(attempt, fault)
  }

  /** As `OpenCall.tryElsewhere`. */
  tryElsewhere(): boolean {
    const { attempt, call, status, isOver, notes, exchange } = this.#call
    if (isOver || attempt === null || !this.#next.schedule(attempt, null)) return false
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
    if (mayTryElsewhere && isFailure && this.#next.schedule(attempt, null, cause)) this.#abandon(attempt)
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
    if (status === 0 && isFailure && this.#next.schedule(leg, headers, cause, fault.leg)) this.#abandon(leg)
    else if (status === 0 && this.#isPromptTooLong(leg, fault.error)) this.#abandon(leg)
    else this.#call.giveUp(isRejected ? upstreamErrors.worker_credentials_rejected() : fault.error)
  }

  /** Not reported to the breaker. Another attempt may succeed after a delay, or on a worker with an open connection. */
  #failedLocally(attempt: Attempt, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    const { parts, status } = this.#call
    logExhaustion(parts.log, failure.message)
    if (notes !== null) notes.failure = failure.kind
    if (status === 0 && !failure.responseStarted && this.#next.schedule(attempt, null)) this.#abandon(attempt)
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

  /** No further attempt at this target follows. */
  end(): void {
    this.#next.cancel()
    this.faults.ended()
  }

  /** Ends the attempt in favour of the next. @param failed the attempt, or the failed leg of a pair */
  #abandon(failed: Attempt): void {
    this.#next.excluded.push(failed.worker.slot)
    this.#call.endAttempt('retried')
  }
}

function toFault({ kind }: UpstreamFailure): Fault {
  if (kind === 'refused') return 'answered'
  return kind === 'connect' ? 'unreachable' : 'silent'
}
