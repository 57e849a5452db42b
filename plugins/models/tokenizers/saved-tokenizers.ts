/** Tokenizers added through the API, kept over restarts: their paths, not their files. */
import { type Collection, GATEWAY_TENANT, type StoreService } from '#kernel'

export interface SavedTokenizer {
  readonly id: string
  readonly name: string
  readonly source: string
  readonly chatTemplatePath?: string
}

export class SavedTokenizers {
  readonly #collection: Collection<SavedTokenizer> | null

  /** @param store undefined where no plugin provides one: nothing is kept then */
  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<SavedTokenizer>('tokenizers') ?? null
  }

  async save(tokenizer: SavedTokenizer): Promise<void> {
    await this.#collection?.put(GATEWAY_TENANT, tokenizer.id, tokenizer)
  }

  async remove(id: string): Promise<void> {
    await this.#collection?.delete(GATEWAY_TENANT, id)
  }

  /** In the order in which they were added, which is that of the ids. */
  async list(): Promise<SavedTokenizer[]> {
    return (await this.#collection?.list(GATEWAY_TENANT)) ?? []
  }
}
