/** The embedding contract: vectors of texts, by engines that are reached in token ids. */
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'

/** Text, or token ids that the client made itself. */
export type EmbeddingInput = string | Uint32Array

export interface EmbeddingVector {
  /** Of a classifier: one value a class, not yet probabilities. */
  readonly values: readonly number[]
  readonly promptTokens: number
  readonly worker: WorkerEntry
}

export interface EmbeddingService {
  /**
   * One vector an input, in their order; each may come from another worker. One that fails ends the others.
   * @param model as the client named it
   * @throws GatewayError that the client gets; UpstreamFailure when the client leaves
   */
  embed(
    ctx: RequestContext,
    request: { readonly model: string; readonly inputs: readonly EmbeddingInput[] },
  ): Promise<readonly EmbeddingVector[]>
}

export const Embeddings = token<EmbeddingService>('embeddings')
