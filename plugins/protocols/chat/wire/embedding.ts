/** Payloads of embeddings. */
import { Type } from '#kernel'
import { optional, U32 } from './fields.ts'
import { Usage } from './sampling.ts'

/** The input is the worker's business: text, texts, token ids or batches of them. */
export const EmbeddingRequest = Type.Object({
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  input: Type.Unknown({ description: 'String, array of strings, token ids, or arrays of token ids.' }),
  encoding_format: optional(Type.String(), '`float` or `base64`.'),
  dimensions: optional(U32()),
  user: optional(Type.String()),
  rid: optional(Type.String()),
})

/** What workers answer; passed through, never checked. */
export const EmbeddingReply = Type.Object({
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
