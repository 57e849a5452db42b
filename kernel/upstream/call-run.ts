/**
 * One call: starts attempts until a response is passed on to the handler, reports a success to the breaker, and releases the
 * in-flight count of each attempt exactly once. `send-attempt.ts` picks the worker and sends the request, `attempt-failures.ts`
 * decides what follows a failed attempt. @hot
 */
import { UNKNOWN_MODEL } from '../balance/compiled-table.ts'
import type { Attempt } from '../balance/worker-balance.ts'
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { AttemptReport } from '../contracts/hook.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { LegFault } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { TokenUsage } from '../contracts/request.ts'
import type { CallWatch } from '../contracts/traffic.ts'
import type { Exchange, HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { turnNowMs } from '../observe/timing.ts'
import { correctedUsage, sumOfUsage } from '../wire/token-usage.ts'
import { AttemptFailures, type FailingCall } from './attempt-failures.ts'
import { AttemptNotes, reportAttempt } from './attempt-notes.ts'
import type { CallParts } from './call-parts.ts'
import { CallTarget } from './call-target.ts'
import { HeldRefusal } from './held-refusal.ts'
import { KeyMask } from './key-mask.ts'
import { checkModel } from './key-scope.ts'
import { PairAttempt } from './pair-attempt.ts'
import { isJson, isPage, isStream } from './response-headers.ts'
import { pickAttempt, sendAttempt } from './send-attempt.ts'
import type { WatchedStream } from './stalled-streams.ts'
import { upstreamErrors } from './upstream-errors.ts'

/** Bodies of discarded responses are read up to this size, for their message and so that the connection can be reused. */
const MAX_DRAINED_BYTES = 65_536

/** Parts of a response that may name its model. */
const MAX_NAMING_PARTS = 8

const BAD_REQUEST = 400
const SERVICE_UNAVAILABLE = 503

export class CallRun implements OpenCall, FailingCall, WatchedStream {
  /** Status of the response that is passed on; 0 before it. */
  status = 0
  /** The call has finished, failed or was aborted. */
  isOver = false
  attemptedAtMs = 0
  byteAtMs = -1
  place = -1
  readonly call: Call
  readonly #handler: CallHandler
  readonly parts: CallParts
  /** Canonical id. */
  model: string
  readonly target: CallTarget | null
  readonly startedAtMs = turnNowMs()
  exchange: Exchange | null = null
  attempt: Attempt | null = null
  attemptCount = 0
  /** Number of attempts at earlier targets. */
  #attemptsBefore = 0
  /** At the current target; null until an attempt has failed. */
  #failures: AttemptFailures | null = null
  /** The rest of the current exchange is read and discarded. */
  #isDiscarding = false
  #discardedBytes = 0
  /** Of the worker of the current attempt; null if it has no key. */
  #mask: KeyMask | null = null
  /** Null unless its body decides whether the next target of a virtual model follows. */
  #refusal: HeldRefusal | null = null
  /** Further parts of the current response that may name its model. */
  #namingParts = 0
  /** The caller is paused; applies to later exchanges too. */
  isPaused = false
  meter: CallWatch | null = null
  /** Worker of the last attempt; null before the first. */
  #usedWorker: WorkerEntry | null = null
  notes: AttemptNotes | null = null

  constructor(call: Call, handler: CallHandler, parts: CallParts) {
    this.call = call
    this.#handler = handler
    this.target = CallTarget.of(call, parts)
    this.model = this.target?.model ?? CallTarget.modelOf(call, parts)
    this.parts = parts
  }

  get worker(): WorkerEntry | null {
    return this.attempt === null ? null : this.attempt.worker
  }

  get #failuresOf(): AttemptFailures {
    this.#failures ??= new AttemptFailures(this)
    return this.#failures
  }

  /** Starts the first attempt, at a virtual model when the call is ready for its target. Never throws. */
  start(): void {
    const target = this.target
    const pending = target === null ? null : this.#prepareFor(target)
    if (pending === null) this.begin()
    else
      pending.then(
        () => {
          if (!this.isOver) this.begin()
        },
        (error: unknown) => this.giveUp(error),
      )
  }

  #prepareFor({ parameters }: CallTarget): Promise<void> | null {
    return this.call.prepareFor?.(this.model, parameters) ?? null
  }

  /** Starts the first or the next attempt. Never throws. */
  begin(): void {
    this.attemptCount++
    try {
      const { ctx } = this.call
      const isAside = this.call.isAside === true
      if (!isAside && !ctx.isModelAllowed) checkModel(ctx.identity, this.call.model)
      const attempt = pickAttempt(this)
      // An onPick hook may end the request.
      if (this.isOver) {
        attempt.release()
        return
      }
      this.attempt = attempt
      this.byteAtMs = -1
      this.#usedWorker = attempt.worker
      this.#mask = KeyMask.of(attempt.worker)
      if (isAside) ctx.model ??= this.#servedModel(attempt.worker)
      else this.#showOn(ctx, attempt.worker)
      ctx.attempts++
      if (ctx.hooks.onAttempt !== null) this.notes = new AttemptNotes()
      if (this.call.stream) this.#watchStream()
      this.#startMeter(attempt.worker)
      sendAttempt(this, attempt)
    } catch (error) {
      this.#failuresOf.notSent(error)
    }
  }

  /** A request without a model counts as one for the first of the worker's. */
  #servedModel({ models }: WorkerEntry): string {
    return this.model === UNKNOWN_MODEL && models.length > 0 ? models[0].id : this.model
  }

  #showOn(ctx: RelayContext, worker: WorkerEntry): void {
    ctx.workerUrl = worker.url
    ctx.model = this.#servedModel(worker)
    if (this.target !== null) ctx.showTarget(this.target.plan.name, this.model)
  }

  // As a watched stream: an attempt of a pair counts for the decode worker.

  get slot(): number {
    return this.attempt === null ? -1 : this.attempt.worker.slot
  }

  #watchStream(): void {
    this.attemptedAtMs = turnNowMs()
    this.parts.streams.add(this)
  }

  isSilent(nowMs: number): void {
    const { ctx } = this.call
    if (ctx.opensAtMs !== 0 && nowMs >= ctx.opensAtMs && this.call.isAside !== true) ctx.openEarly()
  }

  pause(): void {
    this.isPaused = true
    this.exchange?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.exchange?.resume()
  }

  get accepts(): Call['accepts'] {
    return this.target === null ? this.call.accepts : this.target.accepts
  }

  get parameters(): ModelParameters | null {
    return this.target === null ? null : this.target.parameters
  }

  /** Once per call, with the first worker. */
  #startMeter(worker: WorkerEntry): void {
    const { traffic } = this.parts
    if (traffic === null || this.meter !== null) return
    const { ctx, isAside, stream } = this.call
    const isFirst = ctx.attempts === 1 && isAside !== true
    const overheadMs = isFirst ? turnNowMs() - ctx.startedAtMs : null
    const model = this.#servedModel(worker)
    this.meter = traffic.call(worker, model, this.endpoint, stream, this.startedAtMs, overheadMs)
  }

  #countUnrouted(error: unknown): void {
    this.parts.traffic?.unrouted(error, this.model, this.endpoint, this.call.stream)
  }

  get endpoint(): string {
    return this.call.ctx.route.endpoint ?? 'other'
  }

  onSent(exchange: Exchange): void {
    this.exchange = exchange
    if (this.isPaused) exchange.pause()
  }

  get attemptNumber(): number {
    return this.attemptCount - this.#attemptsBefore
  }

  get excluded(): readonly number[] | undefined {
    return this.#failures?.excluded
  }

  get usedMs(): number {
    return this.attemptCount === 1 ? 0 : performance.now() - this.startedAtMs
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.meter?.answered(status)
    this.notes?.answered(status)
    if (status >= 400) {
      if (this.#failuresOf.answered(status, headers, contentLength)) return
      if (status === BAD_REQUEST && this.status === 0 && this.target?.mayTryLongerContext === true) {
        this.#refusal = new HeldRefusal(status, headers, contentLength)
        return
      }
    } else if (this.call.needsStream === true && !isStream(headers)) {
      this.#failuresOf.unusable('stream', status)
      return
    } else if (this.call.worker === null && isPage(headers)) {
      this.#failuresOf.unusable('page', status)
      return
    }
    if (this.status !== 0) {
      if (status >= 400) this.fail(upstreamErrors.read_response_body_failed(`status ${status}`))
      return
    }
    this.status = status
    this.#namingParts = status < 400 && isJson(headers) ? MAX_NAMING_PARTS : 0
    try {
      this.#handler.onHead(status, headers, contentLength)
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  onResponseData(chunk: Buffer): void {
    this.#failures?.faults.receive(chunk)
    if (this.#isDiscarding) {
      this.#discardedBytes += chunk.length
      if (this.#discardedBytes > MAX_DRAINED_BYTES) this.#stopDiscarding()
      return
    }
    if (this.byteAtMs < 0) this.attempt?.firstByte()
    this.byteAtMs = this.parts.streams.nowMs
    if (this.#namingParts > 0) this.#compareModel(chunk)
    const bytes = this.#mask === null ? chunk : this.#mask.pass(chunk)
    if (bytes.length > 0) this.#passData(bytes)
  }

  #compareModel(chunk: Buffer): void {
    const { worker } = this
    const isNamed =
      worker === null ||
      worker.isExternal ||
      this.model === UNKNOWN_MODEL ||
      this.parts.warnings.compareModel(worker, this.model, chunk)
    this.#namingParts = isNamed ? 0 : this.#namingParts - 1
  }

  #passData(bytes: Buffer): void {
    try {
      if (this.#refusal === null) this.#handler.onData(bytes)
      else if (!this.#refusal.take(bytes)) this.#passRefusal(this.#refusal)
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  onResponseEnd(): void {
    if (this.#isDiscarding) this.#isDiscarding = false
    else if (!this.isOver) {
      const rest = this.#mask?.rest() ?? null
      if (rest !== null) this.#passData(rest)
      if (this.isOver) return
      try {
        this.#ended()
      } catch (error) {
        this.#handlerFailed(error)
      }
    }
  }

  #ended(): void {
    if (this.#refusal !== null) {
      if (this.#failuresOf.refused(this.#refusal.body)) {
        this.#refusal = null
        return
      }
      this.#passRefusal(this.#refusal)
      if (this.isOver) return
    }
    const fault = this.#handler.faultAtEnd?.() ?? null
    if (fault === null) {
      this.finish()
      this.#handler.onEnd()
    } else this.onResponseError(fault)
  }

  #passRefusal(refusal: HeldRefusal): void {
    this.#refusal = null
    this.status = refusal.status
    refusal.passHead(this.#handler)
    const { body } = refusal
    if (!this.isOver && body.length > 0) this.#handler.onData(body)
  }

  /** An exception of the handler has no caller that could catch it: it fails the request. */
  #handlerFailed(error: unknown): void {
    this.giveUp(error)
    this.call.ctx.fail(error)
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#refusal = null
    if (this.#isDiscarding) this.#isDiscarding = false
    // Gateways close the connection behind the error event of a stream.
    else if (failure.responseStarted && this.#handler.hasSentError?.() === true) this.onResponseEnd()
    else if (this.attempt !== null) this.#failuresOf.exchangeFailed(this.attempt, failure)
  }

  onLegFailed(fault: LegFault): void {
    if (this.attempt instanceof PairAttempt) this.#failuresOf.legFailed(this.attempt, fault)
  }

  tryElsewhere(): boolean {
    return this.#failuresOf.tryElsewhere()
  }

  #enterNext(target: CallTarget): void {
    // One call for each target in the metrics, each by its model.
    this.meter?.done(this.call.ctx, target.isContextTooShort ? BAD_REQUEST : SERVICE_UNAVAILABLE)
    this.meter = null
    target.advance()
    this.model = target.model
    this.#failures?.end()
    this.#failures = null
    this.#attemptsBefore = this.attemptCount
  }

  tryAgain(): void {
    this.#stopDiscarding()
    this.exchange = null
    this.#failures?.faults.settle()
    if (this.target?.isGivenUp !== true) this.begin()
    else {
      this.#enterNext(this.target)
      this.start()
    }
  }

  discardResponse(contentLength: number): void {
    this.#discardedBytes = 0
    this.#isDiscarding = contentLength <= MAX_DRAINED_BYTES
    if (!this.#isDiscarding) this.exchange?.abort()
  }

  #stopDiscarding(): void {
    if (this.#isDiscarding) this.exchange?.abort()
    this.#isDiscarding = false
  }

  finish(): void {
    if (this.isOver) return
    this.isOver = true
    const { status } = this
    const attempt = this.attempt
    const hasFailed =
      status >= 400 && attempt !== null && this.parts.retry.isFailure(status, attempt.worker.resilience)
    if (status < 400) attempt?.succeeded()
    else if (!hasFailed) attempt?.refused()
    else if (!this.#failuresOf.faults.isOfRequest) this.#failuresOf.faults.blame(attempt, 'answered')
    if (attempt !== null && status < 400) this.#working(attempt)
    if (status < 400) this.#failures?.faults.served()
    this.#failures?.end()
    this.endAttempt(hasFailed ? 'failure' : 'success')
    this.meter?.done(this.call.ctx, status)
  }

  #working(attempt: Attempt): void {
    const { warnings } = this.parts
    warnings.working(attempt.worker)
    if (attempt instanceof PairAttempt) warnings.working(attempt.prefill.worker)
  }

  used(usage: TokenUsage): void {
    this.#addUsage(usage)
    this.#meterUsage(usage)
  }

  estimated(estimate: TokenUsage, exact: Promise<TokenUsage>): void {
    const { ctx } = this.call
    this.#addUsage(estimate)
    const corrected = exact.then((usage) => {
      ctx.usage = ctx.usage === null ? usage : correctedUsage(ctx.usage, estimate, usage)
      this.#meterUsage(usage)
    })
    const earlier = ctx.usageCorrection
    ctx.usageCorrection = earlier === null ? corrected : earlier.then(() => corrected)
  }

  #addUsage(usage: TokenUsage): void {
    const { ctx } = this.call
    ctx.usage = ctx.usage === null ? usage : sumOfUsage(ctx.usage, usage)
  }

  /** Once per response: metrics cannot be corrected. */
  #meterUsage(usage: TokenUsage): void {
    if (this.#usedWorker !== null) this.meter?.used(this.call.ctx, this.#usedWorker, usage)
  }

  fail(error: unknown): void {
    this.#failuresOf.fail(error)
  }

  giveUp(error: unknown): void {
    this.exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    this.#failures?.end()
    this.endAttempt('failure')
    if (this.meter === null) this.#countUnrouted(error)
    else this.meter.done(this.call.ctx, error instanceof GatewayError ? error.status : 500)
    try {
      this.#handler.onFailed(error)
    } catch (failure) {
      this.call.ctx.fail(failure)
    }
  }

  abort(): void {
    this.exchange?.abort()
    if (this.isOver) return
    this.isOver = true
    this.#failures?.end()
    this.endAttempt('cancelled')
    this.meter?.done(this.call.ctx, 0)
  }

  /** Releases the in-flight count and reports the attempt to onAttempt hooks. */
  endAttempt(outcome: AttemptReport['outcome']): void {
    const attempt = this.attempt
    const notes = this.notes
    if (attempt === null) return
    this.attempt = null
    attempt.release()
    if (this.call.stream) this.parts.streams.remove(this)
    if (outcome !== 'retried') this.#failures?.faults.settle()
    if (notes === null) return
    this.notes = null
    const report = (one: Attempt, itsNotes: AttemptNotes) =>
      reportAttempt(this.call.ctx, itsNotes.toReport(one, this.attemptCount, outcome), this.parts.log)
    if (attempt instanceof PairAttempt && attempt.prefillNotes !== null)
      report(attempt.prefill, attempt.prefillNotes)
    report(attempt, notes)
  }
}
