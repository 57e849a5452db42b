/** Sends one attempt of a pair: requests, hooks, and the strategy of the workers' connection mode. */
import type { Call } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { PairCall, PairHandler, PairLeg, PairRequests, PairStrategy } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { Exchange, UpstreamHandler, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { CallParts } from './call-parts.ts'
import type { PairAttempt } from './pair-attempt.ts'

/** The call that makes the attempt. */
export interface AttemptSource {
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

export class OpenPair implements PairCall {
  readonly ctx: RelayContext
  readonly model: string
  readonly #attempt: PairAttempt
  readonly #source: AttemptSource
  readonly #usedMs: number
  readonly #strategy: PairStrategy
  readonly #requests: PairRequests

  /** @throws pairs_unsupported (501), and errors of the call and the strategy; then nothing was sent */
  constructor(attempt: PairAttempt, source: AttemptSource) {
    const { call, parts, model, attemptCount, parameters, usedMs } = source
    this.ctx = call.ctx
    this.model = model
    this.#attempt = attempt
    this.#source = source
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
    const { call, parts, model } = this.#source
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

  /** Runs `onUpstreamRequest` for both. @returns null if no hook is asynchronous */
  runHooks(): Promise<unknown> | null {
    const { ctx } = this
    const { onUpstreamRequest } = ctx.hooks
    if (onUpstreamRequest === null) return null
    const run = (leg: PairLeg) =>
      onUpstreamRequest(ctx, {
        worker: this.#attempt.leg(leg).worker,
        headers: this.#requests[leg].headers,
      })
    const first = run('prefill')
    if (first instanceof Promise) return first.then(() => run('decode'))
    const second = run('decode')
    return second instanceof Promise ? second : null
  }

  start(handler: PairHandler): Exchange {
    return this.#strategy.start(this, this.#requests, handler)
  }
}
