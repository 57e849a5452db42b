/** Payloads of embeddings, classification and reranking. */
import { type Static, Type } from '#kernel'
import { nullable, nullableStringOrList } from '#shared'
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

type RankedText = string | Readonly<Record<string, unknown>>
/** Branches on the type first, so that a wrong text is reported as such. */
const TextOrObject = Type.Unsafe<RankedText>({
  type: ['string', 'object'],
  minLength: 1,
  description: 'A text, not blank, or an object with content parts for workers that rank pictures.',
})
const documents = Type.Array(Type.Unsafe<RankedText>({ type: ['string', 'object'] }), { minItems: 1 })

export const RerankRequest = Type.Object({
  query: TextOrObject,
  documents,
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  top_k: nullable(Type.Integer({ minimum: 1 }), 'Default: all documents.'),
  return_documents: nullable(Type.Boolean(), 'Default true.'),
  rid: nullableStringOrList({ items: Type.String() }),
  user: nullable(Type.String()),
})

/** The form of vendors; the worker reads further members. */
export const V1RerankRequest = Type.Object({
  query: TextOrObject,
  documents: Type.Unsafe<readonly RankedText[] | Readonly<Record<string, unknown>>>({
    type: ['array', 'object'],
    minItems: 1,
    items: { type: ['string', 'object'] },
  }),
  model: nullable(Type.String(), 'Absent: any worker.'),
  return_documents: nullable(Type.Boolean(), 'Default true.'),
})

/** One scored document. */
const RerankResult = Type.Object({
  score: Type.Number(),
  relevance_score: Type.Number({ description: 'The same, by the name that most clients know.' }),
  document: Type.Optional(
    Type.Unknown({ description: 'The text, or what the worker returned of an object.' }),
  ),
  index: Type.Integer({ minimum: 0, description: 'Place in the request, 0-based.' }),
})

export const RerankResponse = Type.Object({
  results: Type.Array(RerankResult, { description: 'Best first.' }),
  model: Type.String(),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
  object: Type.Literal('rerank'),
  id: Type.Unsafe<string | string[] | null>({
    type: ['string', 'array', 'null'],
    items: { type: 'string' },
    description: 'The rid of the request.',
  }),
  created: Type.Integer({ description: 'Unix time in seconds.' }),
})

export type RerankResponse = Static<typeof RerankResponse>
