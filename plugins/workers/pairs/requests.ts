/** The two requests of a pair: the same meeting point in both bodies, everything else as each worker would get it alone. */

import type { PairCall, PairRequests, UpstreamRequest } from '#kernel'
import { topLevelMembers, withMembers } from '#shared'
import { bootstrapMembers } from './bootstrap.ts'
import { pairErrors } from './errors.ts'

const NO_BODY = Buffer.alloc(0)

/** @throws request_preparation_failed (400), pd_batch_too_large (400) */
export function meetingRequests(pair: PairCall, whole: PairRequests): PairRequests {
  const members = bootstrapMembers(whole.prefill.body ?? NO_BODY, pair.prefill)
  if (members === null) throw pairErrors.request_preparation_failed()
  return { prefill: meeting(whole.prefill, members), decode: meeting(whole.decode, members) }
}

function meeting(request: UpstreamRequest, members: ReadonlyMap<string, string>): UpstreamRequest {
  const body = withMembers(request.body ?? NO_BODY, members)
  if (body === null) throw pairErrors.request_preparation_failed()
  return { ...request, body }
}

/** True when the client wants the log probabilities of its prompt: `return_logprob` is a flag, or a list of flags. */
export function wantsPromptLogprobs(body: Buffer | null): boolean {
  if (body === null) return false
  const member = topLevelMembers(body)?.findLast(({ name }) => name === 'return_logprob')
  return member !== undefined && body.toString('latin1', member.valueStart, member.valueEnd).includes('true')
}
