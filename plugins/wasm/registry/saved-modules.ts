/**
 * Modules registered through the API, kept over restarts: path and hash, not the bytes. The Store holds small records,
 * and a file that has changed is no longer what somebody approved.
 */
import { type Collection, GATEWAY_TENANT, type StoreService } from '#kernel'
import type { ModuleDescriptor } from '../wire.ts'

export interface SavedModule {
  readonly uuid: string
  readonly descriptor: ModuleDescriptor
  readonly hash: string
  /** As the record had it; set when the module declares it itself. */
  readonly onFailure: 'open' | 'closed'
  /** Nanoseconds since 1970. */
  readonly createdAtNs: string
  /** Of the first version in its place; older records have none, and are the first themselves. */
  readonly firstUuid?: string
}

export class SavedModules {
  readonly #collection: Collection<SavedModule> | null

  /** @param store undefined where no plugin provides one: nothing is kept then */
  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<SavedModule>('wasm-modules') ?? null
  }

  async save(module: SavedModule): Promise<void> {
    await this.#collection?.put(GATEWAY_TENANT, module.uuid, module)
  }

  async remove(uuid: string): Promise<void> {
    await this.#collection?.delete(GATEWAY_TENANT, uuid)
  }

  /** In order of registration, which is that of the ids of first versions. */
  async list(): Promise<SavedModule[]> {
    const saved = (await this.#collection?.list(GATEWAY_TENANT)) ?? []
    return saved.toSorted((a, b) => (firstUuidOf(a) < firstUuidOf(b) ? -1 : 1))
  }
}

export function firstUuidOf({ uuid, firstUuid = uuid }: SavedModule): string {
  return firstUuid
}
