/** Tokenizers added through the API, kept over restarts: their paths, not the files. */
import { createHash } from 'node:crypto'
import {
  type Collection,
  defineValidator,
  GATEWAY_TENANT,
  type MeshService,
  type SharedRecords,
  type Static,
  type StoreService,
  Type,
} from '#kernel'

const SavedTokenizerSchema = Type.Object({
  id: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
  name: Type.String({ minLength: 1, maxLength: 1_024 }),
  source: Type.String({ minLength: 1, maxLength: 4_096 }),
  chatTemplatePath: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
})
export type SavedTokenizer = Static<typeof SavedTokenizerSchema>

const validator = defineValidator(SavedTokenizerSchema)

export interface TokenizerStore {
  /** Other gateways use it too. */
  readonly isShared: boolean
  /** Call before work whose result is saved. @throws mesh_unavailable, mesh_diverged (503) */
  checkChangeable(): Promise<void>
  /** In the order in which they were added, which is that of the ids. */
  list(): Promise<readonly SavedTokenizer[]>
  /** @returns false if another gateway has added one of that name. @throws mesh_unavailable (503) */
  save(tokenizer: SavedTokenizer): Promise<boolean>
  remove(tokenizer: Pick<SavedTokenizer, 'id' | 'name'>): Promise<void>
  /** Called for each change. @param removed id of one that is gone */
  onChange(listener: (removed: string | null, added: SavedTokenizer | null) => void): void
}

export class SavedTokenizers implements TokenizerStore {
  readonly isShared = false
  readonly #collection: Collection<SavedTokenizer> | null

  /** @param store undefined if no plugin provides one; nothing is stored then */
  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<SavedTokenizer>('tokenizers', isSavedTokenizer) ?? null
  }

  async checkChangeable(): Promise<void> {}

  async save(tokenizer: SavedTokenizer): Promise<true> {
    await this.#collection?.put(GATEWAY_TENANT, tokenizer.id, tokenizer)
    return true
  }

  async remove({ id }: { readonly id: string }): Promise<void> {
    await this.#collection?.delete(GATEWAY_TENANT, id)
  }

  async list(): Promise<SavedTokenizer[]> {
    return (await this.#collection?.list(GATEWAY_TENANT)) ?? []
  }

  onChange(): void {}
}

/** In the records of the mesh, by hash of the name, so that a name is given once. */
export class SharedTokenizers implements TokenizerStore {
  readonly isShared = true
  readonly #mesh: MeshService
  readonly #records: SharedRecords<SavedTokenizer>
  /** Ids by hash of the name. */
  readonly #ids = new Map<string, string>()

  constructor(mesh: MeshService) {
    this.#mesh = mesh
    this.#records = mesh.records<SavedTokenizer>('tokenizers', isSharedTokenizer)
  }

  checkChangeable(): Promise<void> {
    return this.#mesh.checkChangeable()
  }

  async list(): Promise<SavedTokenizer[]> {
    const { all } = this.#records
    for (const [key, { value }] of all) this.#ids.set(key, value.id)
    return [...all.values()].map(({ value }) => value).toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  async save(tokenizer: SavedTokenizer): Promise<boolean> {
    const record = await this.#records.change(keyOf(tokenizer.name), (current) => current ?? tokenizer)
    return record?.value.id === tokenizer.id
  }

  async remove({ id, name }: Pick<SavedTokenizer, 'id' | 'name'>): Promise<void> {
    await this.#records.change(keyOf(name), (current) => (current?.id === id ? undefined : current))
  }

  onChange(listener: (removed: string | null, added: SavedTokenizer | null) => void): void {
    this.#records.watch((key, record) => {
      const before = this.#ids.get(key) ?? null
      const added = record?.value ?? null
      if (added === null) this.#ids.delete(key)
      else this.#ids.set(key, added.id)
      listener(before === added?.id ? null : before, added)
    })
  }
}

function isSharedTokenizer(value: unknown, key: string): boolean {
  return isSavedTokenizer(value) && keyOf((value as SavedTokenizer).name) === key
}

function isSavedTokenizer(value: unknown): boolean {
  return validator.problem(value) === null
}

function keyOf(name: string): string {
  return createHash('sha256').update(name).digest('hex')
}
