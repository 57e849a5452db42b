/** Payloads of classification. */
import { Type } from '#kernel'
import { optional } from './fields.ts'
import { Usage } from './sampling.ts'

export const ClassifyRequest = Type.Object({
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  input: Type.Unsafe<string | string[] | number[]>({
    type: ['string', 'array'],
    items: { type: ['string', 'integer'] },
    description: 'String, array of strings, or token ids.',
  }),
  user: optional(Type.String()),
  rid: optional(Type.String()),
  priority: optional(Type.Integer()),
})

/** What workers answer; passed through, never checked. */
export const ClassifyReply = Type.Object({
  id: Type.String(),
  object: Type.Literal('list'),
  created: Type.Integer({ description: 'Unix time in seconds.' }),
  model: Type.String(),
  data: Type.Array(
    Type.Object({
      index: Type.Integer(),
      label: Type.String(),
      probs: Type.Array(Type.Number()),
      num_classes: Type.Integer(),
    }),
  ),
  usage: Usage,
})
