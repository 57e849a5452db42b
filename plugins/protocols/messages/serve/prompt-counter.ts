/** How many tokens a prompt has: by the model's tokenizer where one is loaded, else an estimate. */
import type { GenerationRequest, Host, TokenizerService } from '#kernel'
import { estimatePromptTokens, templatePrompt } from '#shared'

export class PromptCounter {
  readonly #balance: Pick<Host['balance'], 'canonicalModel'>
  readonly #tokenizers: TokenizerService | null

  constructor(balance: Pick<Host['balance'], 'canonicalModel'>, tokenizers: TokenizerService | null) {
    this.#balance = balance
    this.#tokenizers = tokenizers
  }

  /** Null if no tokenizer of the model is loaded. @throws as `LoadedTokenizer.count` */
  count(request: GenerationRequest): Promise<number> | null {
    if (this.#tokenizers === null || request.model === null) return null
    const tokenizer = this.#tokenizers.find(this.#balance.canonicalModel(request.model))
    return tokenizer === undefined ? null : tokenizer.count(templatePrompt(request))
  }

  estimate(request: GenerationRequest): number {
    return estimatePromptTokens(request)
  }
}
