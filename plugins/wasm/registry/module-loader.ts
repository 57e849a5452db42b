/** Loads modules for the registry, and assigns rows of the statistics to them. */
import { uuidV7 } from '#shared'
import type { WasmConfig } from '../config.ts'
import type { OutgoingHttp } from '../fetch/outgoing-http.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { isRemote } from '../sources/module-reference.ts'
import type { ModuleSources } from '../sources/module-sources.ts'
import { type ModuleStats, rowsFor, wallClockNs } from '../statistics/module-stats.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { checkName, loadModule, type ModuleFile, readModule, toModuleFile } from './load-module.ts'
import type { Registered } from './module-list.ts'
import type { StateKeeper } from './state-keeper.ts'

export interface LoaderParts {
  readonly config: WasmConfig
  readonly stats: ModuleStats
  /** Runs the first start of modules. */
  readonly pool: GuestPool
  readonly http: OutgoingHttp
  readonly sources: ModuleSources
  readonly state: StateKeeper
}

export class ModuleLoader {
  readonly #parts: LoaderParts
  readonly #registered: () => readonly Registered[]
  #nextRow = 0
  #nextPlace = 0

  /** @param registered modules whose rows are in use */
  constructor(parts: LoaderParts, registered: () => readonly Registered[]) {
    this.#parts = parts
    this.#registered = registered
  }

  /**
   * @param isConfigured the configuration file names the path, which may lie outside the roots
   * @throws ModuleRejected
   */
  async read(descriptor: ModuleDescriptor, isConfigured: boolean): Promise<ModuleFile> {
    const { config, sources } = this.#parts
    checkName(descriptor)
    if (isRemote(descriptor.file_path)) return toModuleFile(await sources.read(descriptor), isConfigured)
    return readModule(descriptor, isConfigured, config)
  }

  /** @param options.beside modules that are loaded but not registered yet */
  async load(
    descriptor: ModuleDescriptor,
    file: ModuleFile,
    { uuid = uuidV7(), createdAtNs = wallClockNs(), beside = [] as readonly Registered[] } = {},
  ): Promise<Registered> {
    const { config } = this.#parts
    const { hash, bytes, isConfigured } = file
    const others = [...this.#registered(), ...beside].filter((one) => one.hash === hash)
    const ready = await loadModule(uuid, descriptor, file, config, {
      ...this.#parts,
      compiled: others.map(({ loaded }) => loaded),
    })
    const stored = await this.#parts.state.open(descriptor)
    return {
      line: { firstUuid: uuid, place: this.#nextPlace++ },
      loaded: { ...ready, row: this.#freeRow(beside), stored },
      descriptor,
      isConfigured,
      hash,
      sizeBytes: bytes.length,
      createdAtNs,
      trial: null,
    }
  }

  /** Assigns a row to an earlier version, whose former row may be used by another module. */
  withRow(earlier: Registered, beside: readonly Registered[] = []): Registered {
    const loaded = { ...earlier.loaded, row: this.#freeRow(beside) }
    this.#parts.stats.begin(loaded.row, earlier.createdAtNs)
    return { ...earlier, loaded }
  }

  /** Rows are assigned in rotation, so that late counts of a removed module rarely affect a new one. @throws ModuleRejected */
  #freeRow(beside: readonly Registered[]): number {
    const { maxModules } = this.#parts.config
    const rows = rowsFor(maxModules)
    const taken = new Set([...this.#registered(), ...beside].map(({ loaded }) => loaded.row))
    for (let left = rows; left > 0; left--) {
      const row = this.#nextRow++ % rows
      if (!taken.has(row)) return row
    }
    throw new ModuleRejected(`the limit of ${maxModules} modules is reached (plugins.wasm.maxModules)`)
  }
}
