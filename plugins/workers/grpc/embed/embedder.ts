/** Embeds several texts, a few at a time, in the order in which they came. */
import type { Call, EmbeddingInput, EmbeddingService, EmbeddingVector, RequestContext } from '#kernel'
import type { PromptMaker } from '../engine/prompt.ts'
import { EmbedCall, type EmbedParts } from './embed-call.ts'

/** Inputs of one request that are with engines at one time. */
const AT_ONCE = 32

export class Embedder implements EmbeddingService {
  readonly #prompts: Pick<PromptMaker, 'tokenizerOf' | 'checkTakesText'>
  readonly #parts: EmbedParts

  constructor(prompts: Pick<PromptMaker, 'tokenizerOf' | 'checkTakesText'>, parts: EmbedParts) {
    this.#prompts = prompts
    this.#parts = parts
  }

  async embed(
    ctx: RequestContext,
    { model, inputs }: { readonly model: string; readonly inputs: readonly EmbeddingInput[] },
  ): Promise<readonly EmbeddingVector[]> {
    const tokenizer = await this.#prompts.tokenizerOf(model)
    this.#prompts.checkTakesText(model, tokenizer, 'embeddings')
    const vectors: EmbeddingVector[] = new Array(inputs.length)
    const running = new Set<EmbedCall>()
    let next = 0
    let isOver = false
    const stop = () => {
      isOver = true
      for (const call of running) call.abort()
    }
    ctx.onCancel(stop)
    const work = async () => {
      while (!isOver && next < inputs.length) {
        const at = next++
        const input = inputs[at]
        const text = typeof input === 'string' ? input : ''
        // A vector is of the text with its borders: special tokens are part of it.
        const tokenIds =
          typeof input === 'string' ? await tokenizer.encode(input, { addSpecialTokens: true }) : input
        if (isOver) return
        const ask = { ctx: ctx as Call['ctx'], model, tokenIds, text, id: `embed-${ctx.requestId}-${at}` }
        const call = new EmbedCall(ask, this.#parts)
        running.add(call)
        try {
          vectors[at] = await call.result
        } finally {
          running.delete(call)
        }
      }
    }
    try {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, inputs.length) }, work))
    } finally {
      stop()
    }
    return vectors
  }
}
