/** Payloads of text completions, and of native generation. */
import { type Static, Type } from '#kernel'
import { nullable, nullableStringOrList, stringOrList } from '#shared'
import { commonFields, samplingFields, U32, Usage } from './fields.ts'

export const CompletionRequest = Type.Object({
  ...commonFields,
  // Text, a list of texts, token ids, or a list of lists of token ids.
  prompt: stringOrList({ items: Type.Union([Type.String(), Type.Integer(), Type.Array(Type.Integer())]) }),
  max_tokens: nullable(U32()),
  n: nullable(Type.Integer({ minimum: 1, maximum: 128 })),
  best_of: nullable(Type.Integer({ minimum: 0, maximum: 20 }), 'Greater than n; not with stream.'),
  echo: nullable(Type.Boolean()),
  suffix: nullable(Type.String()),
  logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 })),
  json_schema: nullable(Type.String(), 'At most one of regex, ebnf and json_schema.'),
})

export type CompletionRequest = Static<typeof CompletionRequest>

/** What workers answer; passed through, never checked. */
export const CompletionResponse = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ description: 'Unix time in seconds.' }),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({ text: Type.String(), index: Type.Integer(), finish_reason: nullable(Type.String()) }),
  ),
  usage: nullable(Usage),
})

const SamplingParams = Type.Object({
  temperature: nullable(Type.Number({ minimum: 0 })),
  max_new_tokens: nullable(U32()),
  min_new_tokens: nullable(U32()),
  ...samplingFields,
  stop: nullableStringOrList({ items: Type.String() }),
  json_schema: nullable(Type.String()),
  n: nullable(U32()),
})

export const GenerateRequest = Type.Object({
  model: nullable(Type.String(), 'Absent or `unknown`: any worker.'),
  text: nullable(Type.String(), 'Exactly one of text and input_ids.'),
  input_ids: nullable(
    Type.Array(Type.Union([Type.Integer(), Type.Array(Type.Integer())])),
    'Token ids, or a batch of them.',
  ),
  stream: nullable(Type.Boolean()),
  sampling_params: nullable(SamplingParams),
  return_logprob: nullable(Type.Boolean()),
  logprob_start_len: nullable(Type.Integer()),
  top_logprobs_num: nullable(Type.Integer()),
  token_ids_logprob: nullable(Type.Array(U32())),
  return_text_in_logprobs: nullable(Type.Boolean()),
  return_hidden_states: nullable(Type.Boolean()),
  rid: nullable(Type.String()),
  modalities: nullable(Type.Array(Type.String())),
  session_params: nullable(Type.Record(Type.String(), Type.Unknown())),
  lora_path: nullable(Type.String()),
  custom_labels: nullable(Type.Record(Type.String(), Type.String())),
})

export type GenerateRequest = Static<typeof GenerateRequest>

/** What workers answer; passed through, never checked. */
export const GenerationResponse = Type.Object({
  text: Type.String(),
  output_ids: Type.Array(Type.Integer()),
  meta_info: Type.Record(Type.String(), Type.Unknown()),
})
