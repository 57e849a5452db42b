/** Embeddings by engines that are reached in token ids, told as the API has them. */
import type { EmbeddingService, EmbeddingVector, RequestContext, Static } from '#kernel'
import { chatErrors } from '../../errors.ts'
import type { EmbeddingRequest } from '../../wire/embedding.ts'
import { toInputs } from './embedding-inputs.ts'

/** Never throws: what goes wrong is the client's reply. */
export async function serveEmbedding(
  embeddings: EmbeddingService,
  ctx: RequestContext,
  body: Static<typeof EmbeddingRequest>,
): Promise<void> {
  try {
    const { model, encoding_format: format } = body
    if (body.dimensions != null) throw chatErrors.embedding_dimensions_unsupported()
    const vectors = await embeddings.embed(ctx, { model, inputs: toInputs(body.input) })
    if (ctx.isDone) return
    ctx.json(200, {
      object: 'list',
      data: vectors.map(({ values }, index) => ({
        object: 'embedding',
        index,
        embedding: format === 'base64' ? toBase64(values) : values,
      })),
      model,
      usage: usageOf(vectors),
    })
  } catch (error) {
    ctx.fail(error)
  }
}

/** Little-endian floats of 32 bits. */
function toBase64(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

export function usageOf(vectors: readonly EmbeddingVector[]) {
  const tokens = vectors.reduce((sum, { promptTokens }) => sum + promptTokens, 0)
  return { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0 }
}
