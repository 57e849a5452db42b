/** The internal request as a completions body: for prompts that are text or token ids already. */
import type { EngineAttempt } from '#kernel'
import { answerErrors } from '#shared'
import { isOpenAi } from './stops.ts'
import { addCarried, toConstraint, toSampling } from './to-chat-body.ts'

/** @throws unsupported_by_worker (400) */
export function toCompletionBody({ request, model, worker, stream }: EngineAttempt): Buffer {
  if (request.logprobsOf !== undefined) {
    const param = 'token_ids_logprob'
    throw answerErrors.unsupported_by_worker.with({ param }, 'log probabilities of named tokens')
  }
  const { prompt } = request
  const body: Record<string, unknown> = {
    model,
    prompt: prompt.kind === 'tokens' ? [...prompt.tokenIds] : prompt.kind === 'text' ? prompt.text : '',
    ...toSampling(request, isOpenAi(worker)),
    ...toConstraint(request.constraint),
  }
  if (request.choices !== 1) body.n = request.choices
  if (request.topLogprobs !== null) body.logprobs = request.topLogprobs
  if (request.user !== undefined) body.user = request.user
  if (stream) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  addCarried(body, request, worker)
  return Buffer.from(JSON.stringify(body))
}
