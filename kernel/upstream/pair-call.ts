/** Sends one attempt of a pair: requests, hooks, and the strategy of the workers' connection mode. */
import type { Call } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { PairCall, PairHandler, PairLeg, PairRequests, PairStrategy } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { Exchange, UpstreamHandler, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { CallParts } from './call-parts.ts'
import type { PairAttempt } from './pair-attempt.ts'

export interface PairSource {
  readonly call: Call
  readonly parts: Pick<CallParts, 'transports' | 'limits'>
  /** Canonical. */
  readonly model: string
  /** 1-based number of the attempt. */
  readonly number: number
  readonly parameters: ModelParameters | null
  /** Time used by earlier attempts, milliseconds. */
  readonly usedMs: number
}

/** @throws pairs_unsupported (501), and errors of the call and the strategy; then nothing was sent */
export function preparePair(attempt: PairAttempt, source: PairSource): OpenPair {
  const strategy = source.parts.transports.pairsOf(attempt.prefill.worker)
  return new OpenPair(attempt, source, strategy)
}

export class OpenPair implements PairCall {
  readonly ctx: RelayContext
  readonly model: string
  readonly #attempt: PairAttempt
  readonly #source: PairSource
  readonly #strategy: PairStrategy
  readonly #requests: PairRequests

  constructor(attempt: PairAttempt, source: PairSource, strategy: PairStrategy) {
    const { call, model, number, parameters } = source
    this.ctx = call.ctx
    this.model = model
    this.#attempt = attempt
    this.#source = source
    this.#strategy = strategy
    this.#requests = strategy.requests(this, {
      prefill: call.requestFor(this.prefill, model, number, parameters),
      decode: call.requestFor(this.decode, model, number, parameters),
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
    const { call, parts, model, usedMs } = this.#source
    const limits = parts.limits.after(worker, model, call.stream, usedMs)
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
