/** Registered modules, on control: applies changes one at a time and publishes each. */

import { isDeepStrictEqual } from 'node:util'
import type { Logger } from '#kernel'
import { messageOf } from '#kernel'
import { uuidV7 } from '#shared'
import type { WasmConfig } from '../config.ts'
import { ModuleRejected, wasmErrors } from '../errors.ts'
import type { OutgoingHttp } from '../fetch/outgoing-http.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { type ModuleStats, rowsFor, wallClockNs } from '../statistics/module-stats.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type { LoadedModule, ModuleSet } from '../threads/guest-task.ts'
import type { AddResult, ModuleChange, ModuleDescriptor, ModuleList } from '../wire.ts'
import { loadModule, type ModuleFile, readModule } from './load-module.ts'
import { type ModuleLine, type Registered, toModuleList } from './module-list.ts'
import { ModuleVersions, withoutTrials } from './module-versions.ts'
import { firstUuidOf, type SavedModule, type SavedModules } from './saved-modules.ts'
import type { ChangeResult, Requester } from './thread-commands.ts'

export interface RegistryParts {
  readonly config: WasmConfig
  readonly stats: ModuleStats
  readonly saved: SavedModules
  readonly log: Logger
  /** Runs the first start of modules; closed after each change. */
  readonly pool: GuestPool
  readonly http: OutgoingHttp
  publish(set: ModuleSet): Promise<void>
}

export class Registry {
  readonly #parts: RegistryParts
  #modules: readonly Registered[] = []
  /** UUIDs of saved modules that could not be loaded; they can be removed. */
  readonly #notLoaded = new Set<string>()
  /** Names of modules that were registered through the API. */
  readonly #isSaved = new Set<string>()
  /** Completion of the last queued change. */
  #last: Promise<unknown> = Promise.resolve()
  #nextRow = 0
  #nextPlace = 0
  readonly #versions = new ModuleVersions()

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  get modules(): readonly LoadedModule[] {
    return this.#modules.map(({ loaded }) => loaded)
  }

  /** Current versions and versions on trial. */
  get registered(): readonly Registered[] {
    return this.#modules
  }

  /** Loads modules of the configuration, then saved ones. @throws invalid_wasm_config naming a module that cannot be loaded */
  async start(): Promise<void> {
    const { config, saved } = this.#parts
    for (const [index, descriptor] of config.modules.entries()) {
      try {
        await this.#add(descriptor, null)
      } catch (cause) {
        const name = `modules.${index} (${descriptor.name})`
        throw wasmErrors.invalid_wasm_config.with({ cause }, name, `cannot be loaded: ${messageOf(cause)}`)
      }
    }
    const kept = await saved.list()
    for (const one of kept) {
      if (config.savedModules === 'forget') await saved.remove(one.uuid)
      else await this.#restore(one)
    }
    await this.#parts.pool.close()
  }

  /**
   * Applies a changed configuration. New modules are loaded before anything changes; a changed descriptor replaces the
   * version that runs.
   *
   * @throws ModuleRejected, BadModule if a module cannot be loaded; nothing has changed then
   */
  reconfigure(before: readonly ModuleDescriptor[], after: readonly ModuleDescriptor[]): Promise<void> {
    return this.#queue(async () => {
      const old = new Map(before.map((descriptor) => [descriptor.name, descriptor]))
      const wanted = after.filter((descriptor) => !isDeepStrictEqual(old.get(descriptor.name), descriptor))
      const names = new Set(after.map(({ name }) => name))
      const gone = this.#modules.filter(
        ({ loaded: { name } }) => old.has(name) && !names.has(name) && !this.#isSaved.has(name),
      )
      this.#checkReload(gone, wanted)
      const fresh: Registered[] = []
      for (const descriptor of wanted) {
        fresh.push(await this.#load(descriptor, this.#read(descriptor, true), { beside: fresh }))
      }
      for (const one of gone) this.#modules = this.#without(one)
      for (const one of fresh) {
        this.#parts.stats.begin(one.loaded.row, one.createdAtNs)
        const running = this.#modules.find(({ loaded }) => loaded.name === one.loaded.name)
        this.#modules = inOrder(
          running === undefined
            ? [...this.#modules, one]
            : this.#versions.replace(this.#modules, running, one),
        )
      }
      await this.#publish()
      await this.#parts.pool.close()
    })
  }

  async close(): Promise<void> {
    await this.#last
    this.#parts.http.close()
    await this.#parts.pool.end()
  }

  /** Registers in order; a failure does not stop the following ones. */
  register(descriptors: readonly ModuleDescriptor[], requester: Requester): Promise<AddResult[]> {
    return this.#queue(async () => {
      const results: AddResult[] = []
      for (const descriptor of descriptors) results.push(await this.#registerOne(descriptor, requester))
      await this.#parts.pool.close()
      return results
    })
  }

  remove(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#queue(async () => {
      const found = this.#modules.find(({ loaded }) => loaded.uuid === uuid)
      if (found === undefined && !this.#notLoaded.has(uuid))
        return { uuid: null, text: `no module has the uuid ${uuid}` }
      await this.#parts.saved.remove(uuid)
      this.#notLoaded.delete(uuid)
      this.#modules = found === undefined ? this.#modules : this.#without(found)
      await this.#publish()
      this.#audit('removed', uuid, found?.loaded.name ?? null, found?.hash ?? null, requester)
      return { uuid, text: `module ${uuid} was removed` }
    })
  }

  /** Replaces a module by a new version, or starts a trial. */
  replace(uuid: string, change: ModuleChange, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (old) => {
      if (old.trialOf !== null)
        throw new ModuleRejected(`module ${uuid} is on trial: promote it or roll it back first`)
      const { trial, ...members } = change
      const descriptor = { ...old.descriptor, ...members, name: old.descriptor.name }
      if (trial !== undefined && descriptor.attach_points.some(({ Middleware }) => Middleware === 'OnPick'))
        throw new ModuleRejected('trial is not available for OnPick: a worker is picked once per request')
      if (trial !== undefined) this.#checkRoom()
      const isSamePath = descriptor.file_path === old.descriptor.file_path
      const next = await this.#load(descriptor, this.#read(descriptor, old.isConfigured && isSamePath))
      this.#parts.stats.begin(next.loaded.row, next.createdAtNs)
      const modules =
        trial === undefined
          ? this.#versions.replace(this.#modules, old, next)
          : this.#versions.tryOut(this.#modules, old, next, trial)
      return {
        modules,
        uuid: next.loaded.uuid,
        action: trial === undefined ? 'replaced' : `put on trial (${trial.kind})`,
      }
    })
  }

  /** Makes the version on trial current; a shadow gets a new uuid. */
  promote(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (trial) => {
      const { modules, current } = this.#versions.promote(this.#modules, trial)
      return { modules, uuid: current.loaded.uuid, action: 'promoted' }
    })
  }

  /** Ends a trial, or returns to the previous version. */
  rollback(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (found) => {
      const { modules, current } = this.#versions.rollback(this.#modules, found, (earlier) => {
        // Its former row may be used by another module.
        const loaded = { ...earlier.loaded, row: this.#freeRow() }
        this.#parts.stats.begin(loaded.row, earlier.createdAtNs)
        return { ...earlier, loaded }
      })
      return { modules, uuid: current.loaded.uuid, action: 'rolled back' }
    })
  }

  #change(
    uuid: string,
    requester: Requester,
    act: (found: Registered) => Promise<{ modules: Registered[]; uuid: string; action: string }>,
  ): Promise<ChangeResult> {
    return this.#queue(async () => {
      const found = this.#modules.find(({ loaded }) => loaded.uuid === uuid)
      if (found === undefined) return { uuid: null, text: `no module has the uuid ${uuid}` }
      try {
        const before = this.#modules
        const changed = await act(found)
        await this.#saveChange(before, changed.modules)
        this.#modules = inOrder(changed.modules)
        await this.#publish()
        this.#audit(changed.action, changed.uuid, found.loaded.name, null, requester)
        return { uuid: changed.uuid, text: `module ${found.loaded.name} was ${changed.action}` }
      } catch (error) {
        if (!(error instanceof ModuleRejected || error instanceof BadModule)) throw error
        return { uuid: null, text: error.message }
      } finally {
        await this.#parts.pool.close()
      }
    })
  }

  /** Stores current versions of modules that were registered through the API; trials are not stored. */
  async #saveChange(before: readonly Registered[], after: readonly Registered[]): Promise<void> {
    const ids = (modules: readonly Registered[]) =>
      new Set(modules.filter(({ trialOf }) => trialOf === null).map(({ loaded }) => loaded.uuid))
    const [old, next] = [ids(before), ids(after)]
    const isSaved = before.some(({ loaded }) => !next.has(loaded.uuid) && this.#isSaved.has(loaded.name))
    if (!isSaved) return
    for (const module of after)
      if (next.has(module.loaded.uuid) && !old.has(module.loaded.uuid))
        await this.#parts.saved.save(toSaved(module))
    for (const uuid of old) if (!next.has(uuid)) await this.#parts.saved.remove(uuid)
  }

  #without(found: Registered): readonly Registered[] {
    const left = withoutTrials(this.#modules, found).filter(({ loaded }) => loaded.uuid !== found.loaded.uuid)
    if (!left.some(({ line }) => line === found.line)) this.#versions.forget(found.line)
    // The other version of a trial receives all requests again.
    const other = left.find(({ loaded }) => loaded.uuid === found.trialOf)
    return other === undefined ? left : withoutTrials(left, other)
  }

  list(isFull: boolean): ModuleList {
    const earlier = isFull ? (line: ModuleLine) => this.#versions.earlier(line) : null
    return toModuleList(this.#modules, this.#parts.stats, earlier)
  }

  async #registerOne(descriptor: ModuleDescriptor, requester: Requester): Promise<AddResult> {
    try {
      const { loaded, hash } = await this.#add(descriptor, requester)
      this.#audit('registered', loaded.uuid, loaded.name, hash, requester)
      return { Success: loaded.uuid }
    } catch (error) {
      const isExpected = error instanceof ModuleRejected || error instanceof BadModule
      if (!isExpected)
        this.#parts.log.error({ err: error, module: descriptor.name }, 'wasm module registration failed')
      return { Error: isExpected ? error.message : 'registration failed; see the gateway log' }
    }
  }

  /** @param requester null for modules of the configuration, which are not saved */
  async #add(descriptor: ModuleDescriptor, requester: Requester | null): Promise<Registered> {
    this.#checkRoom()
    const file = this.#read(descriptor, requester === null)
    this.#checkDuplicate(file)
    const registered = await this.#load(descriptor, file)
    if (requester !== null) {
      await this.#parts.saved.save(toSaved(registered))
      this.#isSaved.add(descriptor.name)
    }
    await this.#take(registered)
    return registered
  }

  #checkRoom(): void {
    const { maxModules } = this.#parts.config
    if (this.#modules.length >= maxModules)
      throw new ModuleRejected(`the limit of ${maxModules} modules is reached (plugins.wasm.maxModules)`)
  }

  /** @throws ModuleRejected if the limit of modules would be exceeded */
  #checkReload(gone: readonly Registered[], wanted: readonly ModuleDescriptor[]): void {
    const { maxModules } = this.#parts.config
    const left = new Set(this.#modules)
    for (const one of gone) left.delete(one)
    const names = new Set(wanted.map(({ name }) => name))
    // Replacing a module ends its trial.
    for (const one of left) if (one.trialOf !== null && names.has(one.loaded.name)) left.delete(one)
    for (const { loaded } of left) names.delete(loaded.name)
    if (left.size + names.size > maxModules)
      throw new ModuleRejected(
        `${left.size + names.size} modules would exceed the limit of ${maxModules} (plugins.wasm.maxModules)`,
      )
  }

  #checkDuplicate({ hash }: ModuleFile): void {
    const same = this.#modules.find((module) => module.hash === hash)
    if (same !== undefined)
      throw new ModuleRejected(`duplicate SHA256 hash: module ${same.loaded.uuid} has the same content`)
  }

  #read(descriptor: ModuleDescriptor, isConfigured: boolean): ModuleFile {
    return readModule(descriptor, isConfigured, this.#parts.config)
  }

  /** @param options.beside modules that are loaded but not registered yet */
  async #load(
    descriptor: ModuleDescriptor,
    file: ModuleFile,
    { uuid = uuidV7(), createdAtNs = wallClockNs(), beside = [] as readonly Registered[] } = {},
  ): Promise<Registered> {
    const { config } = this.#parts
    const ready = await loadModule(uuid, descriptor, file, config, this.#parts)
    const loaded: LoadedModule = { ...ready, row: this.#freeRow(beside) }
    const line = { firstUuid: uuid, place: this.#nextPlace++ }
    const { hash, bytes, isConfigured } = file
    return {
      line,
      loaded,
      descriptor,
      isConfigured,
      hash,
      sizeBytes: bytes.length,
      createdAtNs,
      trialOf: null,
    }
  }

  async #take(registered: Registered): Promise<void> {
    this.#parts.stats.begin(registered.loaded.row, registered.createdAtNs)
    this.#modules = inOrder([...this.#modules, registered])
    await this.#publish()
  }

  async #restore(one: SavedModule): Promise<void> {
    try {
      this.#checkRoom()
      const file = this.#read(one.descriptor, false)
      if (file.hash !== one.hash) throw new ModuleRejected('the file has changed since it was registered')
      this.#checkDuplicate(file)
      const { uuid, createdAtNs } = one
      const registered = await this.#load(one.descriptor, file, { uuid, createdAtNs: BigInt(createdAtNs) })
      await this.#take({ ...registered, line: { ...registered.line, firstUuid: firstUuidOf(one) } })
      this.#isSaved.add(one.descriptor.name)
    } catch (cause) {
      const fields = { module: one.descriptor.name, module_uuid: one.uuid, file: one.descriptor.file_path }
      if (one.onFailure === 'closed') {
        const problem = `is load, but module ${one.descriptor.name} (${one.descriptor.file_path}), with on_failure closed, cannot be loaded: ${messageOf(cause)}; restore the file, or start once with forget`
        throw wasmErrors.invalid_wasm_config.with({ cause }, 'savedModules', problem)
      }
      this.#notLoaded.add(one.uuid)
      this.#parts.log.error({ ...fields, reason: messageOf(cause) }, 'saved wasm module not loaded')
    }
  }

  /** Rows are assigned in rotation, so that late counts of a removed module rarely affect a new one. @throws ModuleRejected */
  #freeRow(beside: readonly Registered[] = []): number {
    const { maxModules } = this.#parts.config
    const rows = rowsFor(maxModules)
    const taken = new Set([...this.#modules, ...beside].map(({ loaded }) => loaded.row))
    for (let left = rows; left > 0; left--) {
      const row = this.#nextRow++ % rows
      if (!taken.has(row)) return row
    }
    throw new ModuleRejected(`the limit of ${maxModules} modules is reached (plugins.wasm.maxModules)`)
  }

  #publish(): Promise<void> {
    return this.#parts.publish({ modules: this.modules })
  }

  #audit(action: string, uuid: string, name: string | null, hash: string | null, requester: Requester): void {
    this.#parts.log.info(
      {
        audit: true,
        action,
        principal: requester.principal,
        request_id: requester.requestId,
        module_uuid: uuid,
        module: name,
        sha256: hash,
      },
      'wasm module changed',
    )
  }

  #queue<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#last.then(act)
    this.#last = result.catch(() => {})
    return result
  }
}

/**
 * Sorts by descending priority, then by registration. Versions on trial follow their module.
 */
function inOrder(modules: readonly Registered[]): readonly Registered[] {
  const byUuid = new Map(modules.map((module) => [module.loaded.uuid, module]))
  const priority = (module: Registered) =>
    (byUuid.get(module.trialOf ?? '') ?? module).descriptor.priority ?? 0
  return modules.toSorted((a, b) => priority(b) - priority(a) || a.line.place - b.line.place)
}

function toSaved({ line, loaded, descriptor, hash, createdAtNs }: Registered): SavedModule {
  const { uuid, onFailure } = loaded
  const { firstUuid } = line
  return { uuid, descriptor, hash, onFailure, createdAtNs: String(createdAtNs), firstUuid }
}
