/** The embedding contract: vectors of texts, from engines that take token ids. */
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'

/** Text, or token ids of the client. */
export type EmbeddingInput = string | Uint32Array

export interface EmbeddingVector {
  /** For a classifier one logit per class. */
  readonly values: readonly number[]
  readonly promptTokens: number
  readonly worker: WorkerEntry
}

export interface EmbeddingService {
  /**
   * Returns one vector per input, in order; each may come from another worker. A failure aborts the others.
   * @param model as the client names it
   * @throws GatewayError that the client gets; UpstreamFailure when the client disconnects
   */
  embed(
    ctx: RequestContext,
    request: { readonly model: string; readonly inputs: readonly EmbeddingInput[] },
  ): Promise<readonly EmbeddingVector[]>
}

/** The service that embeds texts with workers of every kind. */
export const Embeddings = token<EmbeddingService>('embeddings')
