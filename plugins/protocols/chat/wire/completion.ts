/** Payloads of text completions. */
import { type Static, Type } from '#kernel'
import { nullable, stringOrList } from '#shared'
import { commonFields, engineFields, U32, Usage } from './fields.ts'

export const CompletionRequest = Type.Object({
  ...commonFields,
  ...engineFields,
  prompt: stringOrList({ items: Type.String() }),
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
