/** Starts one attempt of a call: picks its worker, or its pair of workers, and sends the request. @hot */
import type { Attempt, PickOptions } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { OutgoingAttempt } from '../contracts/hook.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { PairCall, PairHandler, PairLeg, PairRequests, PairStrategy } from '../contracts/pair.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { Exchange, Transport, UpstreamHandler, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { PairAttempt } from './attempts.ts'
import type { CallParts } from './call-parts.ts'

/** The call that makes the attempt, and receives its response. */
export interface SendingCall extends PairHandler {
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
  readonly accepts: Call['accepts']
  /** Slots of the workers tried so far; undefined before the first failure. */
  readonly excluded: readonly number[] | undefined
  readonly isOver: boolean
  /** The request is being sent. */
  onSent(exchange: Exchange): void
  /** Ends the call with an error. */
  giveUp(error: unknown): void
}

/** Picks the worker and counts it as in flight. @throws as `WorkerBalance.pick` */
export function pickAttempt({ call, parts, model, accepts, excluded }: SendingCall): Attempt {
  const { balance } = parts
  const { ctx, worker, tokenIds, promptBytes } = call
  if (worker !== null) return balance.attempt(worker)
  const report = ctx.hooks.onAttempt !== null
  const isPlain =
    excluded === undefined && !report && accepts === null && tokenIds === null && promptBytes === null
  const pickOptions: PickOptions | undefined = isPlain
    ? undefined
    : { excluded, report, accepts, tokenIds, promptBytes }
  if (balance.usesPair(model)) return PairAttempt.pick(balance, ctx, model, pickOptions)
  return balance.pick(ctx, model, pickOptions)
}

/** Sends the request once its hooks have run. @throws errors of the call, the transport and the hooks; then nothing was sent */
export function sendAttempt(run: SendingCall, attempt: Attempt): void {
  if (attempt instanceof PairAttempt) preparePairOf(run, attempt)
  else prepareOne(run, attempt)
}

function prepareOne(run: SendingCall, { worker }: Attempt): void {
  const { call, parts } = run
  const { ctx } = call
  const transport = parts.transports.of(worker)
  const request = call.requestFor(worker, run.model, run.attemptCount, run.parameters)
  const { onUpstreamRequest } = ctx.hooks
  if (onUpstreamRequest === null) {
    sendOne(run, transport, worker, request)
    return
  }
  const outgoing = outgoingOf(worker, request)
  const pending = onUpstreamRequest(ctx, outgoing)
  const send = () => sendOne(run, transport, worker, afterHooks(request, outgoing))
  if (pending instanceof Promise) pending.then(send).catch((error: unknown) => run.giveUp(error))
  else send()
}

function outgoingOf(worker: WorkerEntry, { path, headers, body }: UpstreamRequest): OutgoingAttempt {
  return { worker, path, headers, body }
}

function afterHooks(request: UpstreamRequest, { body }: OutgoingAttempt): UpstreamRequest {
  return body === request.body ? request : { ...request, body }
}

function sendOne(
  run: SendingCall,
  transport: Transport,
  worker: WorkerEntry,
  request: UpstreamRequest,
): void {
  if (run.isOver) return
  const limits = run.parts.limits.after(worker, run.model, run.call.stream, run.usedMs)
  run.onSent(transport.open(worker, request, limits, run))
}

function preparePairOf(run: SendingCall, attempt: PairAttempt): void {
  const pair = new OpenPair(attempt, run)
  const pending = pair.runHooks()
  if (pending === null) sendPair(run, pair)
  else pending.then(() => sendPair(run, pair)).catch((error: unknown) => run.giveUp(error))
}

function sendPair(run: SendingCall, pair: OpenPair): void {
  if (!run.isOver) run.onSent(pair.start(run))
}

/** One attempt of a pair: requests, hooks, and the strategy of the workers' connection mode. */
class OpenPair implements PairCall {
  readonly ctx: RelayContext
  readonly model: string
  readonly #attempt: PairAttempt
  readonly #run: SendingCall
  readonly #usedMs: number
  readonly #strategy: PairStrategy
  #requests: PairRequests

  /** @throws pairs_unsupported (501), and errors of the call and the strategy; then nothing was sent */
  constructor(attempt: PairAttempt, run: SendingCall) {
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

  /** Runs `onUpstreamRequest` for both. @returns null if no hook is asynchronous */
  runHooks(): Promise<unknown> | null {
    const { ctx } = this
    const { onUpstreamRequest } = ctx.hooks
    if (onUpstreamRequest === null) return null
    const run = (leg: PairLeg): Promise<void> | undefined => {
      const outgoing = outgoingOf(this.#attempt.leg(leg).worker, this.#requests[leg])
      const keep = () => {
        this.#requests = { ...this.#requests, [leg]: afterHooks(this.#requests[leg], outgoing) }
      }
      const pending = onUpstreamRequest(ctx, outgoing)
      if (pending instanceof Promise) return pending.then(keep)
      keep()
    }
    const first = run('prefill')
    if (first instanceof Promise) return first.then(() => run('decode'))
    const second = run('decode')
    return second instanceof Promise ? second : null
  }

  start(handler: PairHandler): Exchange {
    return this.#strategy.start(this, this.#requests, handler)
  }
}
