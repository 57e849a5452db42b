/** Fields that chat and text completions share: sampling, limits, and what engines add of their own. */
import { type Static, Type } from '#kernel'
import { optional, Probability, Range, Stop, TopK, U32 } from './fields.ts'

export const StreamOptions = Type.Object({
  include_usage: optional(Type.Boolean()),
  continuous_usage_stats: optional(Type.Boolean()),
  include_obfuscation: optional(Type.Boolean()),
})

export const commonFields = {
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  temperature: optional(Range(0, 2)),
  top_p: optional(Probability),
  frequency_penalty: optional(Range(-2, 2)),
  presence_penalty: optional(Range(-2, 2)),
  stop: Stop,
  stream: optional(Type.Boolean(), 'Answer as server-sent events. Null means false.'),
  stream_options: optional(StreamOptions, 'Only with stream.'),
  seed: optional(Type.Integer()),
  user: optional(Type.String()),
  logit_bias: optional(Type.Record(Type.String(), Type.Number())),
}

export const engineFields = {
  top_k: optional(TopK, '-1 switches it off.'),
  min_p: optional(Range(0, 1)),
  min_tokens: optional(U32()),
  repetition_penalty: optional(Range(0, 2)),
  regex: optional(Type.String(), 'At most one of regex, ebnf and a JSON format.'),
  ebnf: optional(Type.String()),
  stop_token_ids: optional(Type.Array(U32())),
  no_stop_trim: optional(Type.Boolean()),
  ignore_eos: optional(Type.Boolean()),
  continue_final_message: optional(Type.Boolean()),
  return_hidden_states: optional(Type.Boolean()),
  skip_special_tokens: optional(Type.Boolean()),
  separate_reasoning: optional(Type.Boolean()),
  stream_reasoning: optional(Type.Boolean()),
  lora_path: optional(Type.String()),
  rid: optional(Type.String()),
  session_params: optional(Type.Record(Type.String(), Type.Unknown())),
  chat_template_kwargs: optional(Type.Record(Type.String(), Type.Unknown())),
  sampling_seed: optional(Type.Integer({ minimum: 0 })),
}

/** Token counts of a reply. */
export const Usage = Type.Object({
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Optional(Type.Integer()),
  total_tokens: Type.Integer(),
})

export type Usage = Static<typeof Usage>
