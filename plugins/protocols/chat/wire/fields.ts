/** Building blocks of the schemas, and the fields that several formats share. In requests null counts as absent. */
import { type Static, type TSchema, Type } from '#kernel'
import { nullable, nullableStringOrList } from '#shared'

/** A list that is only written. */
export const list = <S extends TSchema>(items: S) => Type.Unsafe<readonly Static<S>[]>(Type.Array(items))

/** 0 to 4294967295. */
export const U32 = (minimum = 0) => Type.Integer({ minimum, maximum: 4_294_967_295 })

export const Range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum })

/** Above 0, at most 1. */
const Probability = Type.Number({ exclusiveMinimum: 0, maximum: 1 })

/** -1 switches it off; 0 is refused. */
const TopK = Type.Unsafe<number>({ type: 'integer', if: { const: -1 }, else: { minimum: 1 } })

/** A string or up to four, none empty; null means absent. */
export const Stop = nullableStringOrList({ items: Type.String({ minLength: 1 }), maxItems: 4, minLength: 1 })

export const StreamOptions = Type.Object({
  include_usage: nullable(Type.Boolean()),
  continuous_usage_stats: nullable(Type.Boolean()),
  include_obfuscation: nullable(Type.Boolean()),
})

/** Of chats, completions and native generation. */
export const samplingFields = {
  top_p: nullable(Probability),
  top_k: nullable(TopK, '-1 switches it off.'),
  min_p: nullable(Range(0, 1)),
  frequency_penalty: nullable(Range(-2, 2)),
  presence_penalty: nullable(Range(-2, 2)),
  repetition_penalty: nullable(Range(0, 2)),
  regex: nullable(Type.String(), 'At most one of regex, ebnf and a JSON format.'),
  ebnf: nullable(Type.String()),
  stop_token_ids: nullable(Type.Array(U32())),
  no_stop_trim: nullable(Type.Boolean()),
  ignore_eos: nullable(Type.Boolean()),
  skip_special_tokens: nullable(Type.Boolean()),
  sampling_seed: nullable(Type.Integer({ minimum: 0 })),
}

/** Of chats and completions. */
export const commonFields = {
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  temperature: nullable(Range(0, 2)),
  stop: Stop,
  stream: nullable(Type.Boolean(), 'Answer as server-sent events. Null means false.'),
  stream_options: nullable(StreamOptions, 'Only with stream.'),
  seed: nullable(Type.Integer()),
  user: nullable(Type.String()),
  logit_bias: nullable(Type.Record(Type.String(), Type.Number())),
  ...samplingFields,
  min_tokens: nullable(U32()),
  continue_final_message: nullable(Type.Boolean()),
  return_hidden_states: nullable(Type.Boolean()),
  separate_reasoning: nullable(Type.Boolean()),
  stream_reasoning: nullable(Type.Boolean()),
  lora_path: nullable(Type.String()),
  rid: nullable(Type.String()),
  session_params: nullable(Type.Record(Type.String(), Type.Unknown())),
  chat_template_kwargs: nullable(Type.Record(Type.String(), Type.Unknown())),
}

/** Token counts of a response. */
export const Usage = Type.Object({
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Optional(Type.Integer()),
  total_tokens: Type.Integer(),
  prompt_tokens_details: nullable(
    Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Optional(Type.Integer()) }),
  ),
  completion_tokens_details: nullable(Type.Object({ reasoning_tokens: Type.Integer() })),
  estimated: Type.Optional(
    Type.Boolean({ description: 'The worker has not reported the counts: they are estimated.' }),
  ),
})

export type Usage = Static<typeof Usage>
