/**
 * One call on its way to workers: picks, sends, tries again elsewhere while nothing was passed on, tells the breaker how
 * it went, and leaves the in-flight count exactly once. What becomes of the answer is up to the handler. @hot
 */
import { CHOSEN_BY_HOOK } from '../balance/pick.ts'
import type { Attempt, Fault, PickOptions } from '../balance/worker-balance.ts'
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { LegFault, PairHandler, PairLeg } from '../contracts/pair.ts'
import type { TokenCounts } from '../contracts/request.ts'
import type { CallWatch } from '../contracts/traffic.ts'
import type {
  Exchange,
  HeaderList,
  Transport,
  UpstreamFailure,
  UpstreamRequest,
} from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import { openNotes, reportAttempts, toReports } from './attempt-reports.ts'
import type { CallParts } from './call-parts.ts'
import { NO_MORE, nextWaitMs } from './next-wait.ts'
import { asOwnTrouble, sayExhausted } from './own-trouble.ts'
import { PairAttempt } from './pair-attempt.ts'
import { type OpenPair, preparePair } from './pair-call.ts'
import { isRejection } from './rejected-credentials.ts'
import { toUpstreamError, upstreamErrors } from './upstream-errors.ts'

/** Announced bodies of answers that are not passed on are read up to this size, so that the connection can be kept. */
const MAX_DRAINED_BYTES = 65_536

/** What is known once an attempt has failed. */
interface Retries {
  /** Slots of the workers that were tried. */
  readonly excluded: number[]
  /** Until the next attempt; null while one is under way. */
  timer: NodeJS.Timeout | null
}

export class CallRun implements OpenCall, PairHandler {
  /** Of the answer that is passed on; 0 until there is one. */
  status = 0
  /** Nothing more happens: answered, given up, or nobody wants it any more. */
  isOver = false
  readonly #call: Call
  readonly #handler: CallHandler
  readonly #parts: CallParts
  /** Canonical. */
  readonly #model: string
  readonly #startedAtMs = performance.now()
  #exchange: Exchange | null = null
  #attempt: Attempt | null = null
  #attemptCount = 0
  #retries: Retries | null = null
  /** Slots of the workers that this request speaks against. */
  #told: number[] | null = null
  /** What still comes of the current exchange is for nobody. */
  #isDiscarding = false
  /** The caller reads slowly: an exchange that begins meanwhile rests as well. */
  #isPaused = false
  #meter: CallWatch | null = null
  #notes: AttemptNotes | null = null

  /** @param model canonical */
  constructor(call: Call, handler: CallHandler, model: string, parts: CallParts) {
    this.#call = call
    this.#handler = handler
    this.#model = model
    this.#parts = parts
  }

  get worker(): WorkerEntry | null {
    return this.#attempt === null ? null : this.#attempt.worker
  }

  /** Sets the first attempt on its way, or the next one. Never throws. */
  begin(): void {
    this.#attemptCount++
    try {
      const attempt = this.#pick()
      // A hook that picks may end the request.
      if (this.isOver) {
        attempt.release()
        return
      }
      const { ctx } = this.#call
      this.#attempt = attempt
      ctx.workerUrl = attempt.worker.url
      ctx.model = this.#model
      ctx.attempts++
      if (ctx.hooks.onAttempt !== null) this.#notes = openNotes(attempt)
      this.#startMeter(attempt.worker)
      if (attempt instanceof PairAttempt) this.#sendPair(attempt)
      else this.#sendOne(attempt)
    } catch (error) {
      this.#notSent(error)
    }
  }

  pause(): void {
    this.#isPaused = true
    this.#exchange?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#exchange?.resume()
  }

  #pick(): Attempt {
    const call = this.#call
    const model = this.#model
    const retries = this.#retries
    const { balance } = this.#parts
    const { ctx } = call
    if (call.worker !== null) return balance.attempt(call.worker)
    const report = ctx.hooks.onAttempt !== null
    const isPlain =
      retries === null &&
      !report &&
      call.accepts === null &&
      call.tokenIds === null &&
      call.promptBytes === null
    const pickOptions: PickOptions | undefined = isPlain
      ? undefined
      : {
          excluded: retries?.excluded,
          report,
          accepts: call.accepts,
          tokenIds: call.tokenIds,
          promptBytes: call.promptBytes,
        }
    if (balance.usesPair(model)) return PairAttempt.pick(balance, ctx, model, pickOptions)
    return balance.pick(ctx, model, pickOptions)
  }

  /** Once per call, when it is known where it goes. */
  #startMeter(worker: WorkerEntry): void {
    const { traffic } = this.#parts
    if (traffic === null || this.#meter !== null) return
    this.#meter = traffic.call(worker, this.#model, this.#endpoint, this.#call.stream, this.#startedAtMs)
  }

  #countUnrouted(error: unknown): void {
    this.#parts.traffic?.unrouted(error, this.#model, this.#endpoint, this.#call.stream)
  }

  get #endpoint(): string {
    return this.#call.ctx.route.endpoint ?? 'other'
  }

  #sendOne(attempt: Attempt): void {
    const call = this.#call
    const parts = this.#parts
    const { ctx } = call
    const { worker } = attempt
    const transport = parts.transports.of(worker)
    const request = call.requestFor(worker, this.#model, this.#attemptCount)
    const { onUpstreamRequest } = ctx.hooks
    const pending =
      onUpstreamRequest === null ? undefined : onUpstreamRequest(ctx, { worker, headers: request.headers })
    if (pending instanceof Promise) {
      pending
        .then(() => this.#send(transport, worker, request))
        .catch((error: unknown) => this.#giveUp(error))
    } else this.#send(transport, worker, request)
  }

  #send(transport: Transport, worker: WorkerEntry, request: UpstreamRequest): void {
    if (this.isOver) return
    this.#exchange = transport.open(worker, request, this.#parts.limits.after(worker, this.#usedMs), this)
    if (this.#isPaused) this.#exchange.pause()
  }

  #sendPair(attempt: PairAttempt): void {
    const call = this.#call
    const parts = this.#parts
    const model = this.#model
    const pair = preparePair(attempt, {
      call,
      parts,
      model,
      number: this.#attemptCount,
      usedMs: this.#usedMs,
    })
    const pending = pair.runHooks()
    if (pending === null) this.#startPair(pair)
    else pending.then(() => this.#startPair(pair)).catch((error: unknown) => this.#giveUp(error))
  }

  #startPair(pair: OpenPair): void {
    if (this.isOver) return
    this.#exchange = pair.start(this)
    if (this.#isPaused) this.#exchange.pause()
  }

  /** Of the time for all attempts, by those before this one. */
  get #usedMs(): number {
    return this.#attemptCount === 1 ? 0 : performance.now() - this.#startedAtMs
  }

  /** Nobody could be picked, or a request could not be made. */
  #notSent(error: unknown): void {
    const isPickError = this.#attempt === null && error instanceof GatewayError && error.isRetryable
    if (!isPickError || !this.#goesOn(null, null)) this.#giveUp(error)
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.#meter?.answered(status)
    this.#notes?.answered(status)
    if (status >= 400 && this.#triesElsewhere(status, headers, contentLength)) return
    this.status = status
    this.#handler.onAnswer(status, headers, contentLength)
  }

  onResponseData(chunk: Buffer): void {
    if (!this.#isDiscarding) this.#handler.onData(chunk)
  }

  onResponseEnd(): void {
    if (this.#isDiscarding) this.#isDiscarding = false
    else if (!this.isOver) {
      const fault = this.#handler.faultAtEnd?.() ?? null
      if (fault !== null) {
        this.onResponseError(fault)
        return
      }
      this.finish()
      this.#handler.onEnd()
    }
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.#isDiscarding) this.#isDiscarding = false
    else if (this.#attempt !== null) this.#exchangeFailed(this.#attempt, failure)
  }

  onLegFailed(fault: LegFault): void {
    const attempt = this.#attempt
    if (!(attempt instanceof PairAttempt)) return
    const leg = attempt.leg(fault.leg)
    const notes = fault.leg === 'prefill' ? attempt.prefillNotes : this.#notes
    const own = fault.failure === null ? null : asOwnTrouble(fault.failure)
    if (own !== null) {
      this.#failedHere(leg, own, notes)
      return
    }
    if (fault.failure !== null) {
      this.#noteFailure(leg.worker, fault.failure, notes)
      this.#logFailure(leg.worker, fault.failure)
    } else {
      this.#meter?.answered(fault.status)
      if (fault.leg === 'decode') this.#notes?.answered(fault.status)
    }
    const { resilience } = leg.worker
    const isRejected = this.#isRejected(leg.worker, fault.status)
    const isFailure =
      isRejected || fault.failure !== null || this.#parts.retry.isFailure(fault.status, resilience)
    if (isFailure) this.#tellFailed(leg, fault.failure === null ? 'answered' : toFault(fault.failure))
    else leg.succeeded()
    const headers = isRejected ? null : fault.headers
    if (this.status === 0 && isFailure && this.#goesOn(leg, headers, fault.leg)) this.#leave(leg)
    else this.#giveUp(isRejected ? upstreamErrors.worker_credentials_rejected() : fault.error)
  }

  #exchangeFailed(attempt: Attempt, failure: UpstreamFailure): void {
    const own = asOwnTrouble(failure)
    if (own !== null) {
      this.#failedHere(attempt, own, this.#notes)
      return
    }
    this.#noteFailure(attempt.worker, failure, this.#notes)
    const { error } = failure
    const isRejected = error !== null && this.#isRejected(attempt.worker, error.status)
    if (!isRejected) this.#logFailure(attempt.worker, failure)
    // What a transport names itself counts as its status does; trouble without a name is always the worker's.
    const isFailure =
      isRejected || error === null || this.#parts.retry.isFailure(error.status, attempt.worker.resilience)
    if (isFailure) this.#tellFailed(attempt, toFault(failure))
    else attempt.succeeded()
    const isRetryable = isRejected || error === null || error.isRetryable
    const mayTryElsewhere = this.status === 0 && !failure.responseStarted && isRetryable
    if (mayTryElsewhere && isFailure && this.#goesOn(attempt, null)) this.#leave(attempt)
    else if (isRejected) this.#giveUp(upstreamErrors.worker_credentials_rejected.with({ cause: failure }))
    else this.#giveUp(toUpstreamError(failure, this.status !== 0))
  }

  /** The worker rejects credentials of the gateway: its failure, whatever it says of other attempts. */
  #isRejected(worker: WorkerEntry, status: number): boolean {
    if (!isRejection(status)) return false
    const { outgoing, credentials } = this.#parts
    if (!outgoing.areOwnCredentials(this.#call.ctx, worker)) return false
    credentials.rejected(worker, status)
    return true
  }

  /** No worker is to blame, so its breaker hears nothing; a pause may help, another worker too where one is connected. */
  #failedHere(attempt: Attempt, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    sayExhausted(this.#parts.log, failure.message)
    if (notes !== null) notes.failure = failure.kind
    if (this.status === 0 && !failure.responseStarted && this.#goesOn(attempt, null)) this.#leave(attempt)
    else this.#giveUp(toUpstreamError(failure, this.status !== 0))
  }

  #noteFailure(worker: WorkerEntry, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    this.#meter?.failed(worker, failure, this.status)
    if (notes !== null) notes.failure = failure.kind
  }

  #logFailure(worker: WorkerEntry, failure: UpstreamFailure): void {
    const { requestId } = this.#call.ctx
    this.#parts.log.warn(
      { request_id: requestId, worker: worker.url, failure: failure.kind, reason: failure.message },
      'an upstream attempt failed',
    )
  }

  /** @returns false when the answer is to be passed on; true also where an error takes its place */
  #triesElsewhere(status: number, headers: HeaderList, contentLength: number): boolean {
    const attempt = this.#attempt
    if (attempt === null) return false
    const isRejected = this.#isRejected(attempt.worker, status)
    if (!isRejected && !this.#parts.retry.isFailure(status, attempt.worker.resilience)) return false
    if (!this.#goesOn(attempt, isRejected ? null : headers)) {
      if (isRejected) this.fail(upstreamErrors.worker_credentials_rejected())
      return isRejected
    }
    this.#tellFailed(attempt, 'answered')
    this.#leave(attempt)
    this.#isDiscarding = contentLength >= 0 && contentLength <= MAX_DRAINED_BYTES
    if (!this.#isDiscarding) this.#exchange?.abort()
    return true
  }

  tryElsewhere(): boolean {
    const attempt = this.#attempt
    if (this.isOver || attempt === null || !this.#goesOn(attempt, null)) return false
    this.#tellFailed(attempt, 'answered')
    this.#leave(attempt)
    this.#exchange?.abort()
    this.status = 0
    return true
  }

  /**
   * Sets the next attempt on its way, if there is to be one.
   *
   * @param culprit what failed, whose worker's settings decide; null when none could be picked
   * @param headers of its answer; null when there was none
   * @param leg of a pair, where one of its workers failed
   */
  #goesOn(culprit: Attempt | null, headers: HeaderList | null, leg?: PairLeg): boolean {
    const parts = this.#parts
    const endpoint = this.#endpoint
    if (this.#call.worker !== null) return false
    const worker = culprit === null ? null : culprit.worker
    const waitMs = nextWaitMs(parts, {
      worker,
      headers,
      number: this.#attemptCount,
      usedMs: performance.now() - this.#startedAtMs,
      hasAnother: () => culprit !== null && this.#hasAnother(culprit, leg),
    })
    const workerType = worker === null ? 'regular' : worker.workerType
    if (waitMs === NO_MORE) {
      if (this.#attemptCount > 1) parts.traffic?.exhausted(workerType, endpoint)
      return false
    }
    parts.log.debug(
      {
        request_id: this.#call.ctx.requestId,
        worker: worker?.url,
        attempt: this.#attemptCount,
        wait_ms: waitMs,
      },
      'another attempt follows a failed one',
    )
    this.#retries ??= { excluded: [], timer: null }
    this.#retries.timer = setTimeout(() => {
      parts.traffic?.retried(workerType, endpoint, this.#attemptCount + 1, waitMs)
      this.#tryAgain()
    }, waitMs)
    return true
  }

  #hasAnother({ policy, worker }: Attempt, leg: PairLeg | undefined): boolean {
    // A hook may choose the same worker again.
    if (policy === CHOSEN_BY_HOOK.policy) return false
    const excluded = (this.#retries?.excluded ?? []).concat(worker.slot)
    const { accepts } = this.#call
    return this.#parts.balance.hasUntried(this.#model, { leg, excluded, accepts })
  }

  /** One request speaks against a worker once, however often it was tried there. */
  #tellFailed(attempt: Attempt, fault: Fault): void {
    const { slot } = attempt.worker
    this.#told ??= []
    if (this.#told.includes(slot)) return
    this.#told.push(slot)
    attempt.failed(fault)
  }

  /** The attempt is given up in favour of another. @param culprit what of it failed: itself, or one leg of a pair */
  #leave(culprit: Attempt): void {
    this.#retries?.excluded.push(culprit.worker.slot)
    this.#endAttempt('retried')
  }

  #tryAgain(): void {
    if (this.#retries !== null) this.#retries.timer = null
    if (this.#isDiscarding) this.#exchange?.abort()
    this.#isDiscarding = false
    this.#exchange = null
    this.begin()
  }

  finish(): void {
    if (this.isOver) return
    this.isOver = true
    const { status } = this
    const attempt = this.#attempt
    const hasFailed =
      status >= 400 && attempt !== null && this.#parts.retry.isFailure(status, attempt.worker.resilience)
    if (hasFailed) this.#tellFailed(attempt, 'answered')
    else attempt?.succeeded()
    if (attempt !== null && status < 400) this.#accepted(attempt)
    this.#endAttempt(hasFailed ? 'failure' : 'success')
    this.#meter?.done(this.#call.ctx, status)
  }

  #accepted(attempt: Attempt): void {
    const { credentials } = this.#parts
    credentials.accepted(attempt.worker)
    if (attempt instanceof PairAttempt) credentials.accepted(attempt.prefill.worker)
  }

  used({ input, output }: TokenCounts): void {
    const { ctx } = this.#call
    const before = ctx.tokens
    ctx.tokens = { input: (before?.input ?? 0) + input, output: (before?.output ?? 0) + output }
    this.#meter?.used({ input, output })
  }

  fail(error: unknown): void {
    // What another worker might have done better speaks against this one.
    const attempt = this.#attempt
    if (attempt !== null && error instanceof GatewayError && error.isRetryable)
      this.#tellFailed(attempt, 'answered')
    this.#giveUp(error)
  }

  /** No answer comes, or what came of it is all there is. */
  #giveUp(error: unknown): void {
    this.#exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    this.#clearTimer()
    this.#endAttempt('failure')
    if (this.#meter === null) this.#countUnrouted(error)
    else this.#meter.done(this.#call.ctx, error instanceof GatewayError ? error.status : 500)
    this.#handler.onFailed(error)
  }

  abort(): void {
    this.#exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    this.#clearTimer()
    this.#endAttempt('cancelled')
    this.#meter?.done(this.#call.ctx, 0)
  }

  #clearTimer(): void {
    if (this.#retries?.timer) clearTimeout(this.#retries.timer)
  }

  /** The attempt leaves the in-flight count, and whoever wants to know is told how it went. */
  #endAttempt(outcome: AttemptReport['outcome']): void {
    const attempt = this.#attempt
    const notes = this.#notes
    if (attempt === null) return
    this.#attempt = null
    attempt.release()
    if (notes === null) return
    this.#notes = null
    const reports = toReports(attempt, notes, this.#attemptCount, outcome)
    reportAttempts(this.#call.ctx, reports, this.#parts.log)
  }
}

function toFault({ kind }: UpstreamFailure): Fault {
  if (kind === 'refused') return 'answered'
  return kind === 'connect' ? 'unreachable' : 'silent'
}
