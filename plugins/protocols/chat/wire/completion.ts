/** Payloads of text completions. */
import { type Static, Type } from '#kernel'
import { optional, stringOrList, U32 } from './fields.ts'
import { commonFields, engineFields, Usage } from './sampling.ts'

export const CompletionRequest = Type.Object({
  ...commonFields,
  ...engineFields,
  prompt: stringOrList<string>({ items: Type.String() }),
  max_tokens: optional(U32()),
  n: optional(Type.Integer({ minimum: 1, maximum: 128 })),
  best_of: optional(Type.Integer({ minimum: 0, maximum: 20 }), 'Greater than n; not with stream.'),
  echo: optional(Type.Boolean()),
  suffix: optional(Type.String()),
  logprobs: optional(Type.Integer({ minimum: 0, maximum: 5 })),
  json_schema: optional(Type.String(), 'At most one of regex, ebnf and json_schema.'),
})

export type CompletionRequest = Static<typeof CompletionRequest>

/** What workers answer; passed through, never checked. */
export const CompletionReply = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ description: 'Unix time in seconds.' }),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({ text: Type.String(), index: Type.Integer(), finish_reason: optional(Type.String()) }),
  ),
  usage: optional(Usage),
})
