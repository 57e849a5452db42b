/** Payloads of reranking. */
import { type Static, Type } from '#kernel'
import { nullable, nullableStringOrList } from '#shared'

const query = Type.String({ minLength: 1, description: 'Not blank.' })
const documents = Type.Array(Type.String(), { minItems: 1 })

export const RerankRequest = Type.Object({
  query,
  documents,
  model: Type.String({ minLength: 1, description: 'Model id or alias.' }),
  top_k: nullable(Type.Integer({ minimum: 1 }), 'Default: all documents.'),
  return_documents: nullable(Type.Boolean(), 'Default true.'),
  rid: nullableStringOrList({ items: Type.String() }),
  user: nullable(Type.String()),
})

export type RerankRequest = Static<typeof RerankRequest>

/** The plain form: other fields mean nothing here. */
export const V1RerankRequest = Type.Object({
  query,
  documents,
  model: nullable(Type.String(), 'Absent: any worker.'),
})

export type V1RerankRequest = Static<typeof V1RerankRequest>

/** One scored document. */
export const RerankResult = Type.Object({
  score: Type.Number(),
  relevance_score: Type.Number({ description: 'The same, by the name that most clients know.' }),
  document: Type.Optional(Type.String()),
  index: Type.Integer({ minimum: 0, description: 'Place in the request, 0-based.' }),
})

export type RerankResult = Static<typeof RerankResult>

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
