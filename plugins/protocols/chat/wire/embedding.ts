/** Payloads of embeddings and classification. */
import { type Static, Type } from '#kernel'
import { nullable } from '#shared'
import { U32, Usage } from './fields.ts'

/** The input is the worker's business: text, texts, token ids or batches of them. */
export const EmbeddingRequest = Type.Object({
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  input: Type.Unknown({ description: 'String, array of strings, token ids, or arrays of token ids.' }),
  encoding_format: nullable(Type.String(), '`float` or `base64`.'),
  dimensions: nullable(U32()),
  user: nullable(Type.String()),
  rid: nullable(Type.String()),
})

export type EmbeddingRequest = Static<typeof EmbeddingRequest>

/** What workers answer; passed through, never checked. */
export const EmbeddingResponse = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String()]),
      index: Type.Integer(),
    }),
  ),
  model: Type.String(),
  usage: Usage,
})

export const ClassifyRequest = Type.Object({
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  input: Type.Unsafe<string | string[] | number[]>({
    type: ['string', 'array'],
    items: { type: ['string', 'integer'] },
    description: 'String, array of strings, or token ids.',
  }),
  user: nullable(Type.String()),
  rid: nullable(Type.String()),
  priority: nullable(Type.Integer()),
})

export type ClassifyRequest = Static<typeof ClassifyRequest>

/** What workers answer; passed through, never checked. */
export const ClassifyResponse = Type.Object({
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
