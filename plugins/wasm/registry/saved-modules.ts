/**
 * Where modules registered through the API are stored. The local store keeps path and hash, not the bytes: it holds small
 * records, and a changed file is not the one that was approved.
 */
import {
  type Collection,
  defineValidator,
  GATEWAY_TENANT,
  type Static,
  type StoreService,
  Type,
} from '#kernel'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { ModuleDescriptorSchema, TrialSchema } from '../wire.ts'
import type { ModuleFile } from './load-module.ts'

const SavedVersionSchema = Type.Object({
  uuid: Type.String({ format: 'uuid' }),
  descriptor: ModuleDescriptorSchema,
  hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** Resolved from the descriptor and the description of the module. */
  onFailure: Type.Enum(['open', 'closed']),
  /** Nanoseconds since 1970. */
  createdAtNs: Type.String({ pattern: '^[0-9]{1,20}$' }),
})
export type SavedVersion = Static<typeof SavedVersionSchema>
const savedVersion = defineValidator(SavedVersionSchema)

/** The versions of one module. */
export const SavedLineSchema = Type.Object({
  /** UUID of the first version: the order of registration. */
  id: Type.String({ format: 'uuid' }),
  current: SavedVersionSchema,
  trial: Type.Union([Type.Object({ version: SavedVersionSchema, rule: TrialSchema }), Type.Null()]),
  /** Available for rollback, oldest first. */
  earlier: Type.Array(SavedVersionSchema, { maxItems: 16 }),
})
export type SavedLine = Static<typeof SavedLineSchema>

export function versionsOf({ current, earlier, trial }: SavedLine): SavedVersion[] {
  return [current, ...earlier, ...(trial === null ? [] : [trial.version])]
}

export interface ModuleStore {
  /** Other gateways use it too, and may change it at any time. */
  readonly isShared: boolean
  /** Reads the store at the start. @returns ids of the lines, in order of registration */
  open(): Promise<readonly string[]>
  /** @returns undefined for an unknown id. @throws ModuleRejected if the record is not usable */
  read(id: string): SavedLine | undefined
  /** @returns false if the line was changed since it was read. @throws mesh_unavailable (503) */
  put(line: SavedLine): Promise<boolean>
  remove(id: string): Promise<void>
  /** Stores the bytes of a version before the version itself. @throws mesh_unavailable (503) */
  keepBytes(file: ModuleFile): Promise<void>
  /** @param readFile reads the file of the descriptor on this machine. @throws ModuleRejected, mesh_unavailable */
  readBytes(version: SavedVersion, readFile: () => Promise<ModuleFile>): Promise<ModuleFile>
  /** @param listener called for each change of a line, of this gateway's too */
  onChange(listener: (id: string) => void): void
}

/** As stored: one record per current version; those on trial and earlier ones are not stored. */
type SavedModule = SavedVersion & {
  /** UUID of the first version; absent if this is the first. */
  readonly firstUuid?: string
}

export class SavedModules implements ModuleStore {
  readonly isShared = false
  readonly #collection: Collection<SavedModule> | null
  readonly #lines = new Map<string, SavedLine>()

  /** @param store undefined if no plugin provides one; nothing is stored then */
  constructor(store: StoreService | undefined) {
    const isValid = (value: unknown) => savedVersion.problem(value) === null
    this.#collection = store?.collection<SavedModule>('wasm-modules', isValid) ?? null
  }

  async open(): Promise<readonly string[]> {
    for (const { firstUuid, ...current } of (await this.#collection?.list(GATEWAY_TENANT)) ?? []) {
      const id = firstUuid ?? current.uuid
      this.#lines.set(id, { id, current, trial: null, earlier: [] })
    }
    return [...this.#lines.keys()].toSorted()
  }

  read(id: string): SavedLine | undefined {
    return this.#lines.get(id)
  }

  async put(line: SavedLine): Promise<true> {
    const { id, current } = line
    const before = this.#lines.get(id)?.current.uuid
    if (before !== current.uuid) {
      await this.#collection?.put(GATEWAY_TENANT, current.uuid, { ...current, firstUuid: id })
      if (before !== undefined) await this.#collection?.delete(GATEWAY_TENANT, before)
    }
    this.#lines.set(id, line)
    return true
  }

  async remove(id: string): Promise<void> {
    const before = this.#lines.get(id)
    if (before !== undefined) await this.#collection?.delete(GATEWAY_TENANT, before.current.uuid)
    this.#lines.delete(id)
  }

  async keepBytes(): Promise<void> {}

  async readBytes({ hash }: SavedVersion, readFile: () => Promise<ModuleFile>): Promise<ModuleFile> {
    const file = await readFile()
    if (file.hash !== hash) throw new ModuleRejected('the file has changed since it was registered')
    return file
  }

  onChange(): void {}
}
