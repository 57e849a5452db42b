/** The two requests of a prefill/decode pair: one body, the same meeting point in both, each worker's own headers. */
import type { RelayContext } from '../../contracts/reply-sink.ts'
import type { UpstreamRequest } from '../../contracts/transport.ts'
import { topLevelMembers, withMembers } from '../../wire/json-members.ts'
import type { DispatchParts } from '../dispatch-parts.ts'
import type { RelayOptions } from '../upstream.ts'
import { toWorkerRequest } from '../worker-request.ts'
import { bootstrapMembers } from './bootstrap.ts'
import type { PairAttempt } from './pair-attempt.ts'
import { type PairLeg, pairErrors } from './pair-errors.ts'

export interface PairRequests {
  readonly prefill: UpstreamRequest
  readonly decode: UpstreamRequest
  /** The client wants the log probabilities of its prompt, which the prefill worker alone knows. */
  readonly wantsPromptLogprobs: boolean
}

export interface PairSource {
  readonly ctx: RelayContext
  readonly options: RelayOptions
  /** With the canonical model. */
  readonly body: Buffer
}

/** @throws request_preparation_failed (400), pd_batch_too_large (400) */
export function pairRequests(
  { prefill, decode }: PairAttempt,
  { outgoing, meters }: Pick<DispatchParts, 'outgoing' | 'meters'>,
  { ctx, options, body }: PairSource,
): PairRequests {
  const members = bootstrapMembers(body, prefill.worker)
  const shared = members === null ? null : withMembers(body, members)
  if (shared === null) {
    meters?.pairs.onBootstrapFailure()
    throw pairErrors.request_preparation_failed()
  }
  return {
    prefill: toWorkerRequest(ctx, options, outgoing, prefill.worker, shared),
    decode: toWorkerRequest(ctx, options, outgoing, decode.worker, shared),
    wantsPromptLogprobs: wantsPromptLogprobs(body),
  }
}

/** `return_logprob` is a flag, or a list of flags for a batch. */
function wantsPromptLogprobs(body: Buffer): boolean {
  const member = topLevelMembers(body)?.findLast(({ name }) => name === 'return_logprob')
  return member !== undefined && body.toString('latin1', member.valueStart, member.valueEnd).includes('true')
}

/** Runs the hook for both requests. @returns null when nothing has to be waited for */
export function runLegHooks(
  ctx: RelayContext,
  attempt: PairAttempt,
  requests: PairRequests,
): Promise<unknown> | null {
  const { onUpstreamRequest } = ctx.hooks
  if (onUpstreamRequest === null) return null
  const run = (leg: PairLeg) =>
    onUpstreamRequest(ctx, { worker: attempt.leg(leg).worker, headers: requests[leg].headers })
  const first = run('prefill')
  const second = () => (ctx.isDone || ctx.isFailing ? undefined : run('decode'))
  if (first instanceof Promise) return first.then(second)
  const last = second()
  return last instanceof Promise ? last : null
}
