/** An attempt at a pair of workers: one for the prefill, one for the decoding, whose response the client gets. */
import type { Attempt, Choice, Fault, PickOptions, WorkerBalance } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { PairCall, PairHandler, PairLeg, PairRequests, PairStrategy } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { Exchange, UpstreamHandler, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { AttemptNotes } from './attempt-notes.ts'
import type { CallParts } from './call-parts.ts'
import { throughHooks } from './worker-request.ts'

/**
 * A prefill and a decode worker, which are picked and counted together. As an `Attempt` it is the decode worker's, whose
 * response the client gets.
 */
export class PairAttempt implements Attempt {
  readonly prefill: Attempt
  readonly decode: Attempt
  /** Those of the decode leg are in the call. Null without an onAttempt hook. */
  readonly prefillNotes: AttemptNotes | null

  private constructor(prefill: Attempt, decode: Attempt, isReported: boolean) {
    this.prefill = prefill
    this.decode = decode
    this.prefillNotes = isReported ? new AttemptNotes() : null
  }

  /**
   * Picks prefill first, then decode, each by the policy of its leg.
   *
   * @throws as `WorkerBalance.pick`; then neither is counted
   */
  static pick(
    balance: WorkerBalance,
    ctx: RelayContext,
    model: string,
    options: PickOptions | undefined,
  ): PairAttempt {
    const prefill = balance.pick(ctx, model, { ...options, leg: 'prefill' })
    try {
      const decode = balance.pick(ctx, model, { ...options, leg: 'decode' })
      return new PairAttempt(prefill, decode, options?.report === true)
    } catch (error) {
      prefill.release()
      throw error
    }
  }

  get worker(): WorkerEntry {
    return this.decode.worker
  }

  get policy(): string {
    return this.decode.policy
  }

  get choice(): Choice | null {
    return this.decode.choice
  }

  leg(leg: PairLeg): Attempt {
    return leg === 'prefill' ? this.prefill : this.decode
  }

  firstByte(): void {
    this.decode.firstByte()
  }

  /** Of the decode worker; the prefill worker's result is reported when its own response has ended. */
  succeeded(): void {
    this.decode.succeeded()
  }

  refused(): void {
    this.decode.refused()
  }

  failed(fault?: Fault): void {
    this.decode.failed(fault)
  }

  /** Both stay counted until the response has ended. */
  release(): void {
    this.prefill.release()
    this.decode.release()
  }
}

/** A call as the requests of its attempts need it. */
export interface RequestingCall {
  readonly call: Call
  readonly parts: CallParts
  /** Canonical. */
  readonly model: string
  /** Number of attempts so far, this one included. */
  readonly attemptCount: number
  /** Of the target of a virtual model; null for none. */
  readonly parameters: ModelParameters | null
  /** Time used by earlier attempts, milliseconds. */
  readonly usedMs: number
}

/** The requests of a pair, and the strategy of the workers' connection mode, which sends them. */
export class PairExchange implements PairCall {
  readonly ctx: RelayContext
  readonly model: string
  readonly #attempt: PairAttempt
  readonly #run: RequestingCall
  readonly #usedMs: number
  readonly #strategy: PairStrategy
  #requests: PairRequests

  /** @throws pairs_unsupported (501), and errors of the call and the strategy; then nothing was sent */
  constructor(attempt: PairAttempt, run: RequestingCall) {
    const { call, parts, model, attemptCount, parameters, usedMs } = run
    this.ctx = call.ctx
    this.model = model
    this.#attempt = attempt
    this.#run = run
    this.#usedMs = usedMs
    this.#strategy = parts.transports.pairsOf(attempt.prefill.worker)
    this.#requests = this.#strategy.requests(this, {
      prefill: call.requestFor(this.prefill, model, attemptCount, parameters),
      decode: call.requestFor(this.decode, model, attemptCount, parameters),
    })
  }

  get prefill(): WorkerEntry {
    return this.#attempt.prefill.worker
  }

  get decode(): WorkerEntry {
    return this.#attempt.decode.worker
  }

  open(leg: PairLeg, request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const { worker } = this.#attempt.leg(leg)
    const { call, parts, model } = this.#run
    const limits = parts.limits.after(worker, model, call.stream, this.#usedMs)
    return parts.transports.of(worker).open(worker, request, limits, handler)
  }

  prefillAnswered(status: number): void {
    this.#attempt.prefillNotes?.answered(status)
  }

  prefillSucceeded(): void {
    this.#attempt.prefillNotes?.ended()
    this.#attempt.prefill.succeeded()
  }

  /** Runs the onUpstreamRequest hooks for one worker, then for the other. */
  async runHooks(): Promise<void> {
    const { prefill, decode } = this.#requests
    this.#requests = {
      prefill: await throughHooks(this.ctx, this.prefill, prefill),
      decode: await throughHooks(this.ctx, this.decode, decode),
    }
  }

  start(handler: PairHandler): Exchange {
    return this.#strategy.start(this, this.#requests, handler)
  }
}
