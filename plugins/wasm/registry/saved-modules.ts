/**
 * Modules registered through the API, stored over restarts: path and hash, not the bytes. The store holds small records,
 * and a changed file is not the one that was approved.
 */
import { type Collection, GATEWAY_TENANT, type StoreService } from '#kernel'
import type { ModuleDescriptor } from '../wire.ts'

export interface SavedModule {
  readonly uuid: string
  readonly descriptor: ModuleDescriptor
  readonly hash: string
  /** Resolved from the descriptor and the description of the module. */
  readonly onFailure: 'open' | 'closed'
  /** Nanoseconds since 1970. */
  readonly createdAtNs: string
  /** UUID of the first version; absent if this is the first. */
  readonly firstUuid?: string
}

export class SavedModules {
  readonly #collection: Collection<SavedModule> | null

  /** @param store undefined if no plugin provides one; nothing is stored then */
  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<SavedModule>('wasm-modules') ?? null
  }

  async save(module: SavedModule): Promise<void> {
    await this.#collection?.put(GATEWAY_TENANT, module.uuid, module)
  }

  async remove(uuid: string): Promise<void> {
    await this.#collection?.delete(GATEWAY_TENANT, uuid)
  }

  /** In order of registration: UUIDs of first versions ascend with time. */
  async list(): Promise<SavedModule[]> {
    const saved = (await this.#collection?.list(GATEWAY_TENANT)) ?? []
    return saved.toSorted((a, b) => (firstUuidOf(a) < firstUuidOf(b) ? -1 : 1))
  }
}

export function firstUuidOf({ uuid, firstUuid = uuid }: SavedModule): string {
  return firstUuid
}
