/** Payloads of native generation. */
import { type Static, Type } from '#kernel'
import { optional, Probability, Range, stringOrList, TopK, U32 } from './fields.ts'

export const SamplingParams = Type.Object({
  temperature: optional(Type.Number({ minimum: 0 })),
  max_new_tokens: optional(U32()),
  min_new_tokens: optional(U32()),
  top_p: optional(Probability),
  top_k: optional(TopK),
  min_p: optional(Range(0, 1)),
  frequency_penalty: optional(Range(-2, 2)),
  presence_penalty: optional(Range(-2, 2)),
  repetition_penalty: optional(Range(0, 2)),
  stop: Type.Optional(stringOrList<string>({ items: Type.String(), allowsNull: true })),
  stop_token_ids: optional(Type.Array(U32())),
  ignore_eos: optional(Type.Boolean()),
  skip_special_tokens: optional(Type.Boolean()),
  no_stop_trim: optional(Type.Boolean()),
  json_schema: optional(Type.String()),
  regex: optional(Type.String()),
  ebnf: optional(Type.String()),
  n: optional(U32()),
  sampling_seed: optional(Type.Integer({ minimum: 0 })),
})

export const GenerateRequest = Type.Object({
  model: optional(Type.String(), 'Absent or `unknown`: any worker.'),
  text: optional(Type.String(), 'Exactly one of text and input_ids.'),
  input_ids: optional(
    Type.Array(Type.Union([Type.Integer(), Type.Array(Type.Integer())])),
    'Token ids, or a batch of them.',
  ),
  stream: optional(Type.Boolean()),
  sampling_params: optional(SamplingParams),
  return_logprob: optional(Type.Boolean()),
  logprob_start_len: optional(Type.Integer()),
  top_logprobs_num: optional(Type.Integer()),
  token_ids_logprob: optional(Type.Array(U32())),
  return_text_in_logprobs: optional(Type.Boolean()),
  return_hidden_states: optional(Type.Boolean()),
  rid: optional(Type.String()),
  modalities: optional(Type.Array(Type.String())),
  session_params: optional(Type.Record(Type.String(), Type.Unknown())),
  lora_path: optional(Type.String()),
  custom_labels: optional(Type.Record(Type.String(), Type.String())),
})

export type GenerateRequest = Static<typeof GenerateRequest>

/** What workers answer; passed through, never checked. */
export const GenerateReply = Type.Object({
  text: Type.String(),
  output_ids: Type.Array(Type.Integer()),
  meta_info: Type.Record(Type.String(), Type.Unknown()),
})
