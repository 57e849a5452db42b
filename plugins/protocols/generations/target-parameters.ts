/** Applies the parameters of a virtual model's target to a generation. */
import { type GenerationRequest, type ModelParameters, mergeParameters, type Sampling } from '#kernel'

/** Parameters of every client format that the internal request holds. */
const SAMPLING: Readonly<Record<string, keyof Sampling>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  repetition_penalty: 'repetitionPenalty',
  seed: 'seed',
  max_tokens: 'maxTokens',
  max_completion_tokens: 'maxTokens',
  max_output_tokens: 'maxTokens',
  min_tokens: 'minTokens',
  stop: 'stop',
}
const EFFORT = 'reasoning_effort'

/**
 * Parameters that the internal request does not hold are sent to workers that take chat requests or the client's format.
 *
 * @param parameters whose types the configuration has checked; null removes what the client sent
 */
export function withTargetParameters(
  request: GenerationRequest,
  parameters: ModelParameters,
): GenerationRequest {
  const sampling: Record<string, unknown> = { ...request.sampling }
  const carried = new Map(request.carried)
  // Removals first: several names may stand for one member.
  const entries = Object.entries(parameters).sort(([, a], [, b]) => Number(b === null) - Number(a === null))
  for (const [name, value] of entries) {
    if (Object.hasOwn(SAMPLING, name)) {
      sampling[SAMPLING[name]] = value === null ? undefined : name === 'stop' ? [value].flat() : value
    } else if (name !== EFFORT) {
      if (value === null) carried.delete(name)
      else carried.set(name, value)
    }
  }
  const { native } = request
  return {
    ...request,
    sampling: sampling as Sampling,
    reasoning: reasoningOf(request, parameters[EFFORT]),
    carried,
    ...(native !== undefined && {
      native: { ...native, members: () => mergeParameters(native.members(), parameters) },
    }),
  }
}

function reasoningOf({ reasoning }: GenerationRequest, effort: unknown): GenerationRequest['reasoning'] {
  if (effort === null) return null
  return typeof effort === 'string' ? { ...reasoning, effort } : reasoning
}
