/** A native generation body as the internal request. */
import type { GenerationRequest, Prompt } from '#kernel'
import { chatErrors } from '../../errors.ts'
import type { GenerateRequest } from '../../wire/generate.ts'
import { toSampling } from '../chat/from-chat-body.ts'
import { toConstraint } from '../completions/from-completion-body.ts'

/**
 * @throws resolve_input_failed (400) for ids that no engine takes, invalid_json_schema (400),
 * generate_field_unsupported (400)
 */
export function fromGenerateBody(body: GenerateRequest, model: string | null): GenerationRequest {
  checkFields(body)
  const sampling = body.sampling_params ?? {}
  return {
    model,
    prompt: toPrompt(body),
    tools: [],
    toolChoice: null,
    constraint: toConstraint(sampling),
    sampling: toSampling({
      ...sampling,
      max_tokens: sampling.max_new_tokens,
      min_tokens: sampling.min_new_tokens,
    }),
    reasoning: null,
    choices: sampling.n || 1,
    topLogprobs: null,
    ...(body.return_logprob === true && toLogprobs(body)),
    wantsTokenIds: true,
    ...(body.rid != null && { carried: new Map([['rid', body.rid]]) }),
  }
}

/** Only with `return_logprob`. */
function toLogprobs({
  top_logprobs_num: top,
  logprob_start_len: from,
  token_ids_logprob: ids,
}: GenerateRequest): Pick<GenerationRequest, 'topLogprobs' | 'promptLogprobsFrom' | 'logprobsOf'> {
  return {
    topLogprobs: Math.max(0, top ?? 0),
    ...(from != null && from >= 0 && { promptLogprobsFrom: from }),
    ...(ids != null && ids.length > 0 && { logprobsOf: ids }),
  }
}

/** Rejects fields that only workers of the native format support and that would change the answer. */
function checkFields(body: GenerateRequest): void {
  const { lora_path: adapter, session_params: session, modalities } = body
  const unsupported = {
    lora_path: adapter != null && adapter !== '',
    session_params: session != null && Object.keys(session).length > 0,
    return_hidden_states: body.return_hidden_states === true,
    modalities: modalities?.some((one) => one !== 'text') === true,
  }
  for (const [field, isSet] of Object.entries(unsupported))
    if (isSet) throw chatErrors.generate_field_unsupported.with({ param: field }, field)
}

function toPrompt({ text, input_ids: ids }: GenerateRequest): Prompt {
  if (text != null) return { kind: 'text', text }
  if (ids == null || ids.length === 0) throw chatErrors.resolve_input_failed('it is empty')
  const tokenIds = new Uint32Array(ids.length)
  for (const [at, id] of ids.entries()) {
    if (typeof id !== 'number')
      throw chatErrors.resolve_input_failed('batches of token ids are supported by HTTP workers only')
    if (id < 0 || id > 0xffff_ffff)
      throw chatErrors.resolve_input_failed('token ids must be integers from 0 to 4294967295')
    tokenIds[at] = id
  }
  return { kind: 'tokens', tokenIds }
}
