/** Starts one attempt of a call: picks its worker, or its pair of workers, and sends the request. @hot */
import type { Attempt, PickOptions } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { PairHandler } from '../contracts/pair.ts'
import type { Exchange, Transport, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { PairAttempt } from './pair-attempt.ts'
import { type AttemptSource, OpenPair } from './pair-call.ts'

/** The call that makes the attempt, and receives its response. */
export interface SendingCall extends PairHandler, AttemptSource {
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
  const pending =
    onUpstreamRequest === null ? undefined : onUpstreamRequest(ctx, { worker, headers: request.headers })
  if (pending instanceof Promise) {
    pending.then(() => sendOne(run, transport, worker, request)).catch((error: unknown) => run.giveUp(error))
  } else sendOne(run, transport, worker, request)
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
