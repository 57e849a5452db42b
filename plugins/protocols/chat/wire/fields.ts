/** Building blocks of the schemas, and the fields that several formats share. In requests null counts as absent. */
import { type Static, type TSchema, Type } from '#kernel'

/** An optional field in which null means absent. */
export function optional<S extends TSchema>(schema: S, description?: string) {
  const options = description === undefined ? {} : { description }
  return Type.Optional(Type.Union([schema, Type.Null()], options))
}

/** A list that is only written. */
export const list = <S extends TSchema>(items: S) => Type.Unsafe<readonly Static<S>[]>(Type.Array(items))

/** 0 to 4294967295. */
export const U32 = (minimum = 0) => Type.Integer({ minimum, maximum: 4_294_967_295 })

export const Range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum })

/** Above 0, at most 1. */
export const Probability = Type.Number({ exclusiveMinimum: 0, maximum: 1 })

/** -1 switches it off; 0 is refused. */
export const TopK = Type.Unsafe<number>({ type: 'integer', if: { const: -1 }, else: { minimum: 1 } })

/**
 * A string or a list of items. Told apart before either is checked: a plain union would blame a bad list for not
 * being a string.
 */
export function stringOrList<T>(list: {
  readonly items?: TSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly allowsNull?: boolean
}) {
  const { minLength, allowsNull = false, ...rest } = list
  const text = { type: allowsNull ? ['string', 'null'] : 'string' }
  return Type.Unsafe<string | T[] | null>({
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: { type: 'array', ...rest },
    else: minLength === undefined ? text : { ...text, minLength },
  })
}

/** A string or up to four, none empty; null means absent. */
export const Stop = Type.Optional(
  stringOrList<string>({
    items: Type.String({ minLength: 1 }),
    maxItems: 4,
    minLength: 1,
    allowsNull: true,
  }),
)

/**
 * An object whose one field decides what else it must hold, such as messages by `role`. Only the branch of the
 * value that is there is checked, so that the error is about the right one.
 */
export function choiceBy<Branches extends Record<string, TSchema>>(key: string, branches: Branches) {
  const entries = Object.entries(branches)
  return Type.Unsafe<{ [Name in keyof Branches]: Static<Branches[Name]> }[keyof Branches]>({
    type: 'object',
    required: [key],
    properties: { [key]: { type: 'string', enum: entries.map(([name]) => name) } },
    allOf: entries.map(([name, branch]) => ({
      if: { required: [key], properties: { [key]: { const: name } } },
      // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
      then: branch,
    })),
  })
}

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
  prompt_tokens_details: optional(Type.Object({ cached_tokens: Type.Integer() })),
  completion_tokens_details: optional(Type.Object({ reasoning_tokens: Type.Integer() })),
})

export type Usage = Static<typeof Usage>

/** A body of a worker: members are known by name, and each value is checked where it is read. */
export type Unchecked<T> = { readonly [Member in keyof T]?: unknown }
