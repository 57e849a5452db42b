/** Starts one attempt of a call: picks its worker, or its pair of workers, and sends the request. @hot */
import type { Attempt, PickOptions } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { PairHandler } from '../contracts/pair.ts'
import type { Exchange, Transport, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { PairAttempt, PairExchange, type RequestingCall } from './pair-attempt.ts'
import { throughHooks } from './worker-request.ts'

/** The call that makes the attempt, and receives its response. */
export interface SendingCall extends RequestingCall, PairHandler {
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
  if (attempt instanceof PairAttempt) {
    sendPair(run, new PairExchange(attempt, run))
    return
  }
  const { worker } = attempt
  const { call, parts } = run
  const transport = parts.transports.of(worker)
  const built = call.requestFor(worker, run.model, run.attemptCount, run.parameters)
  const request = throughHooks(call.ctx, worker, built)
  if (request instanceof Promise)
    request
      .then((ready) => sendOne(run, transport, worker, ready))
      .catch((error: unknown) => run.giveUp(error))
  else sendOne(run, transport, worker, request)
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

function sendPair(run: SendingCall, pair: PairExchange): void {
  const send = () => {
    if (!run.isOver) run.onSent(pair.start(run))
  }
  if (run.call.ctx.hooks.onUpstreamRequest === null) send()
  else
    pair
      .runHooks()
      .then(send)
      .catch((error: unknown) => run.giveUp(error))
}
