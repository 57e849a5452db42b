/**
 * One request on its way to workers: picks, sends, tries again elsewhere while the client has seen nothing, tells the
 * breaker how it went, and leaves the in-flight count exactly once. What becomes of the answer is up to the relay and
 * the collector, which extend this. @hot
 */
import type { Attempt, PickOptions } from '../balance/worker-balance.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
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
import type { DispatchParts } from './dispatch-parts.ts'
import { NO_MORE, nextWaitMs } from './next-wait.ts'
import { PairAttempt } from './pair/pair-attempt.ts'
import { type LegFault, PairExchange, type PairHandler } from './pair/pair-exchange.ts'
import { type PairRequests, pairRequests, runLegHooks } from './pair/pair-requests.ts'
import type { RelayMeter } from './relay-meter.ts'
import type { RelayOptions } from './upstream.ts'
import { toUpstreamError } from './upstream-errors.ts'
import { canonicalBody, toWorkerRequest } from './worker-request.ts'

/** Announced bodies of answers that are not passed on are read up to this size, so that the connection can be kept. */
const MAX_DRAINED_BYTES = 65_536

/** What is known once an attempt has failed. */
interface Retries {
  /** Slots of the workers that failed. */
  readonly excluded: number[]
  /** Until the next attempt; null while one is under way. */
  timer: NodeJS.Timeout | null
}

export abstract class Dispatch implements PairHandler {
  protected readonly ctx: RelayContext
  protected exchange: Exchange | null = null
  /** Nothing more happens: answered, given up, or the client has left. */
  protected isOver = false
  /** Of the answer that is passed on; 0 until there is one. */
  protected status = 0
  private readonly parts: DispatchParts
  private readonly options: RelayOptions
  /** Canonical. */
  private readonly model: string
  private readonly startedAtMs = performance.now()
  private attempt: Attempt | null = null
  private attemptCount = 0
  private retries: Retries | null = null
  /** What still comes of the current exchange is for nobody. */
  private isDiscarding = false
  private meter: RelayMeter | null = null
  private notes: AttemptNotes | null = null

  constructor(ctx: RelayContext, options: RelayOptions, model: string, parts: DispatchParts) {
    this.ctx = ctx
    this.options = options
    this.model = model
    this.parts = parts
  }

  /** The request's body, for as long as attempts may follow. */
  protected abstract body(): Buffer
  /** The answer that is passed on begins. */
  protected abstract answerStarted(headers: HeaderList, contentLength: number): void
  protected abstract answerData(chunk: Buffer): void
  protected abstract answerEnded(): void
  /** No answer comes, or it broke off. */
  protected abstract failed(error: unknown): void
  /** The request is over, whatever comes of it. Before the reply is written. */
  protected abstract over(): void

  protected begin(): void {
    this.attemptCount++
    try {
      const attempt = this.pick()
      this.attempt = attempt
      this.ctx.workerUrl = attempt.worker.url
      if (this.ctx.hooks.onAttempt !== null) this.notes = openNotes(attempt)
      this.startMeter(attempt.worker)
      if (attempt instanceof PairAttempt) this.sendPair(attempt)
      else this.sendOne(attempt)
    } catch (error) {
      this.notSent(error)
    }
  }

  private pick(): Attempt {
    const { options, model, ctx, retries } = this
    const { balance } = this.parts
    if (options.worker !== undefined) return balance.attempt(options.worker)
    const report = ctx.hooks.onAttempt !== null
    const isPlain = retries === null && !report
    const pickOptions: PickOptions | undefined = isPlain ? undefined : { excluded: retries?.excluded, report }
    if (balance.usesPair(model)) return PairAttempt.pick(balance, ctx, model, pickOptions)
    return balance.pick(ctx, model, pickOptions)
  }

  /** Once per request, when it is known where it goes. */
  private startMeter(worker: WorkerEntry): void {
    const { meters } = this.parts
    if (meters === null || this.meter !== null) return
    const { stream } = this.options
    this.meter = meters.start(worker, this.model, this.endpoint, stream, this.startedAtMs)
  }

  private countUnrouted(error: unknown): void {
    this.parts.meters?.unrouted(error, this.model, this.endpoint, this.options.stream)
  }

  private get endpoint(): string {
    return this.ctx.route.endpoint ?? 'other'
  }

  private sendOne(attempt: Attempt): void {
    const { ctx, options, parts } = this
    const { worker } = attempt
    const transport = parts.transports.of(worker)
    const body = canonicalBody(ctx, options, this.model, this.body())
    const request = toWorkerRequest(ctx, options, parts.outgoing, worker, body)
    const { onUpstreamRequest } = ctx.hooks
    const pending =
      onUpstreamRequest === null ? undefined : onUpstreamRequest(ctx, { worker, headers: request.headers })
    if (pending instanceof Promise) {
      pending.then(() => this.send(transport, worker, request)).catch((error: unknown) => this.giveUp(error))
    } else this.send(transport, worker, request)
  }

  private send(transport: Transport, worker: WorkerEntry, request: UpstreamRequest): void {
    if (this.isOver) return
    this.exchange = transport.send(worker, request, this.parts.limits.after(worker, this.usedMs), this)
  }

  private sendPair(attempt: PairAttempt): void {
    const { ctx, options, parts } = this
    const body = canonicalBody(ctx, options, this.model, this.body())
    const requests = pairRequests(attempt, parts, { ctx, options, body })
    const pending = runLegHooks(ctx, attempt, requests)
    if (pending === null) this.startPair(attempt, requests)
    else pending.then(() => this.startPair(attempt, requests)).catch((error: unknown) => this.giveUp(error))
  }

  private startPair(attempt: PairAttempt, requests: PairRequests): void {
    if (this.isOver) return
    const metrics = this.parts.meters?.pairs.of(attempt.prefill.worker, this.model) ?? null
    const exchange = new PairExchange(attempt, this, metrics)
    this.exchange = exchange
    exchange.start(requests, this.parts, this.usedMs)
  }

  /** Of the time for all attempts, by those before this one. */
  private get usedMs(): number {
    return this.attemptCount === 1 ? 0 : performance.now() - this.startedAtMs
  }

  /** Nobody could be picked, or a request could not be made. */
  private notSent(error: unknown): void {
    const isPickError = this.attempt === null && error instanceof GatewayError && error.isRetryable
    if (!isPickError || !this.goesOn(null, null)) this.giveUp(error)
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.meter?.answered(status)
    this.notes?.answered(status)
    if (status >= 400 && this.triesElsewhere(status, headers, contentLength)) return
    this.status = status
    this.answerStarted(headers, contentLength)
  }

  onResponseData(chunk: Buffer): void {
    if (!this.isDiscarding) this.answerData(chunk)
  }

  onResponseEnd(): void {
    if (this.isDiscarding) this.isDiscarding = false
    else this.answerEnded()
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.isDiscarding) this.isDiscarding = false
    else if (this.attempt !== null) this.exchangeFailed(this.attempt, failure)
  }

  onLegFailed(fault: LegFault): void {
    const { attempt } = this
    if (!(attempt instanceof PairAttempt)) return
    const leg = attempt.leg(fault.leg)
    const notes = fault.leg === 'prefill' ? attempt.prefillNotes : this.notes
    if (fault.failure !== null) this.noteFailure(leg.worker, fault.failure, notes)
    else {
      this.meter?.answered(fault.status)
      if (fault.leg === 'decode') this.notes?.answered(fault.status)
    }
    const { resilience } = leg.worker
    const isFailure = fault.failure !== null || this.parts.retry.isFailure(fault.status, resilience)
    if (isFailure) leg.failed()
    else leg.succeeded()
    if (this.status === 0 && isFailure && this.goesOn(leg.worker, fault.headers)) this.leave(leg)
    else this.giveUp(fault.error)
  }

  private exchangeFailed(attempt: Attempt, failure: UpstreamFailure): void {
    this.noteFailure(attempt.worker, failure, this.notes)
    attempt.failed()
    const mayTryElsewhere = this.status === 0 && !failure.responseStarted
    if (mayTryElsewhere && this.goesOn(attempt.worker, null)) this.leave(attempt)
    else this.giveUp(toUpstreamError(failure, this.status !== 0))
  }

  private noteFailure(worker: WorkerEntry, failure: UpstreamFailure, notes: AttemptNotes | null): void {
    this.meter?.failed(worker, failure, this.status)
    if (notes !== null) notes.failure = failure.kind
    const { requestId } = this.ctx
    this.parts.log.warn(
      { request_id: requestId, worker: worker.url, failure: failure.kind, reason: failure.message },
      'an upstream attempt failed',
    )
  }

  /** @returns false when the answer is to be passed on */
  private triesElsewhere(status: number, headers: HeaderList, contentLength: number): boolean {
    const { attempt } = this
    if (attempt === null || !this.parts.retry.isFailure(status, attempt.worker.resilience)) return false
    if (!this.goesOn(attempt.worker, headers)) return false
    attempt.failed()
    this.leave(attempt)
    this.isDiscarding = contentLength >= 0 && contentLength <= MAX_DRAINED_BYTES
    if (!this.isDiscarding) this.exchange?.abort()
    return true
  }

  /**
   * Sets the next attempt on its way, if there is to be one.
   *
   * @param worker the one that failed, whose settings decide; null when none could be picked
   * @param headers of its answer; null when there was none
   */
  private goesOn(worker: WorkerEntry | null, headers: HeaderList | null): boolean {
    const { parts, endpoint } = this
    if (this.options.worker !== undefined) return false
    const usedMs = performance.now() - this.startedAtMs
    const waitMs = nextWaitMs(parts, { worker, headers, number: this.attemptCount, usedMs })
    const workerType = worker === null ? 'regular' : worker.workerType
    if (waitMs === NO_MORE) {
      if (this.attemptCount > 1) parts.meters?.retries.onExhausted(workerType, endpoint)
      return false
    }
    parts.log.debug(
      { request_id: this.ctx.requestId, worker: worker?.url, attempt: this.attemptCount, wait_ms: waitMs },
      'another attempt follows a failed one',
    )
    this.retries ??= { excluded: [], timer: null }
    this.retries.timer = setTimeout(() => {
      parts.meters?.retries.onRetry(workerType, endpoint, this.attemptCount + 1, waitMs)
      this.tryAgain()
    }, waitMs)
    return true
  }

  /** The attempt is given up in favour of another. @param culprit what of it failed: itself, or one leg of a pair */
  private leave(culprit: Attempt): void {
    this.retries?.excluded.push(culprit.worker.slot)
    this.endAttempt('retried')
  }

  private tryAgain(): void {
    if (this.retries !== null) this.retries.timer = null
    if (this.isDiscarding) this.exchange?.abort()
    this.isDiscarding = false
    this.exchange = null
    this.begin()
  }

  /** The answer is whole. */
  protected finish(): void {
    if (this.isOver) return
    this.isOver = true
    this.over()
    const { attempt, status } = this
    const hasFailed =
      status >= 400 && attempt !== null && this.parts.retry.isFailure(status, attempt.worker.resilience)
    if (hasFailed) attempt.failed()
    else attempt?.succeeded()
    this.endAttempt(hasFailed ? 'failure' : 'success')
    this.meter?.done(this.ctx, status)
  }

  /** No answer comes, or what came of it is all there is. */
  protected giveUp(error: unknown): void {
    this.exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    this.over()
    this.endAttempt('failure')
    if (this.meter === null) this.countUnrouted(error)
    else this.meter.done(this.ctx, error instanceof GatewayError ? error.status : 500)
    this.failed(error)
  }

  /** The client has left: no attempt goes on, and none follows. */
  protected cancel(): void {
    this.exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    if (this.retries?.timer) clearTimeout(this.retries.timer)
    this.over()
    this.endAttempt('cancelled')
    this.meter?.done(this.ctx, 0)
  }

  /** The attempt leaves the in-flight count, and whoever wants to know is told how it went. */
  private endAttempt(outcome: AttemptReport['outcome']): void {
    const { attempt, notes } = this
    if (attempt === null) return
    this.attempt = null
    attempt.release()
    if (notes === null) return
    this.notes = null
    const reports = toReports(attempt, notes, this.attemptCount, outcome)
    reportAttempts(this.ctx, reports, this.parts.log)
  }
}
