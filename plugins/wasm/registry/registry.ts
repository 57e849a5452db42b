/** Registered modules, on control: applies changes one at a time and publishes each. */

import { isDeepStrictEqual } from 'node:util'
import { GatewayError, type Logger, messageOf } from '#kernel'
import { wasmErrors } from '../errors.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { LoadedModule, ModuleSet } from '../threads/guest-task.ts'
import type { AddResult, ModuleChange, ModuleDescriptor, ModuleList } from '../wire.ts'
import type { ModuleFile } from './load-module.ts'
import { type ModuleLine, type Registered, toModuleList } from './module-list.ts'
import { type LoaderParts, ModuleLoader } from './module-loader.ts'
import { ModuleTable, type VersionChange } from './module-table.ts'
import { SavedLines, toSavedLine } from './saved-lines.ts'
import { type ModuleStore, type SavedVersion, versionsOf } from './saved-modules.ts'
import type { ChangeResult, Requester } from './thread-commands.ts'

export interface RegistryParts extends LoaderParts {
  readonly saved: ModuleStore
  readonly log: Logger
  publish(set: ModuleSet): Promise<void>
}

export class Registry {
  readonly #parts: RegistryParts
  readonly #table: ModuleTable
  readonly #loader: ModuleLoader
  readonly #lines: SavedLines
  /** Completion of the last queued change. */
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#table = new ModuleTable(parts.config)
    this.#loader = new ModuleLoader(parts, () => this.#table.modules)
    this.#lines = new SavedLines({
      saved: parts.saved,
      loader: this.#loader,
      table: this.#table,
      log: parts.log,
      publish: () => this.#publish(),
      onChange: (id) => this.#onChange(id),
    })
  }

  get modules(): readonly LoadedModule[] {
    return this.#table.running
  }

  /** Current versions and versions on trial. */
  get registered(): readonly Registered[] {
    return this.#table.modules
  }

  /** Number of saved modules that are not loaded, or not in their newest version. */
  get notLoaded(): number {
    return this.#lines.notLoaded.size
  }

  /** Loads modules of the configuration, then saved ones. @throws invalid_wasm_config naming a module that cannot be loaded */
  start(): Promise<void> {
    return this.#queue(async () => {
      const { config, saved } = this.#parts
      for (const [index, descriptor] of config.modules.entries()) {
        try {
          await this.#add(descriptor, null)
        } catch (cause) {
          const name = `modules.${index} (${descriptor.name})`
          throw wasmErrors.invalid_wasm_config.with({ cause }, name, `cannot be loaded: ${messageOf(cause)}`)
        }
      }
      for (const id of await saved.open()) {
        if (config.savedModules === 'forget' && !saved.isShared) await saved.remove(id)
        else this.#lines.mark(id)
      }
      saved.onChange((id) => this.#onChange(id))
      await this.#lines.follow()
    })
  }

  /**
   * Applies a changed configuration. New modules are loaded before anything changes; a changed descriptor replaces the
   * version that runs.
   *
   * @throws ModuleRejected if a module cannot be loaded; nothing has changed then
   */
  reconfigure(before: readonly ModuleDescriptor[], after: readonly ModuleDescriptor[]): Promise<void> {
    return this.#queue(async () => {
      const old = new Map(before.map((descriptor) => [descriptor.name, descriptor]))
      const wanted = after.filter((descriptor) => !isDeepStrictEqual(old.get(descriptor.name), descriptor))
      const names = new Set(after.map(({ name }) => name))
      const gone = this.#table.modules.filter(
        ({ loaded: { name } }) => old.has(name) && !names.has(name) && !this.#isSavedName(name),
      )
      this.#table.checkReload(gone, wanted)
      const fresh: Registered[] = []
      for (const descriptor of wanted) {
        const file = await this.#loader.read(descriptor, true)
        fresh.push(await this.#loader.load(descriptor, file, { beside: fresh }))
      }
      for (const one of gone) this.#table.modules = this.#table.without(one)
      for (const one of fresh) {
        this.#parts.stats.begin(one.loaded.row, one.createdAtNs)
        const running = this.#table.modules.find(({ loaded }) => loaded.name === one.loaded.name)
        this.#table.modules =
          running === undefined ? [...this.#table.modules, one] : this.#table.replaced(running, one)
      }
      await this.#publish()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#lines.close()
    await this.#last
    await this.#parts.state.close()
    this.#parts.http.close()
    await this.#parts.pool.end()
  }

  /** Registers in order; a failure does not stop the following ones. */
  register(descriptors: readonly ModuleDescriptor[], requester: Requester): Promise<AddResult[]> {
    return this.#queue(async () => {
      const results: AddResult[] = []
      for (const descriptor of descriptors)
        results.push(await this.#registerOne(descriptor, requester, results.length === 0))
      return results
    })
  }

  remove(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#queue(async () => {
      for (;;) {
        await this.#lines.follow()
        const found = this.#table.find(uuid)
        const [id] = [...this.#lines.notLoaded].find(([, one]) => one.uuid === uuid) ?? []
        if (found === undefined && id === undefined)
          return { uuid: null, text: `no module has the uuid ${uuid}` }
        const left = found === undefined ? this.#table.modules : this.#table.without(found)
        if (found === undefined || id === found.line.firstUuid) await this.#parts.saved.remove(id ?? uuid)
        else if (!(await this.#lines.save(found.line, left))) continue
        if (id !== undefined) this.#lines.notLoaded.delete(id)
        this.#table.modules = left
        await this.#publish()
        this.#audit('removed', uuid, found?.loaded.name ?? null, found?.hash ?? null, requester)
        return { uuid, text: `module ${uuid} was removed` }
      }
    })
  }

  /** Replaces a module by a new version, or starts a trial. */
  replace(uuid: string, change: ModuleChange, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (old) => {
      if (old.trial !== null)
        throw new ModuleRejected(`module ${uuid} is on trial: promote it or roll it back first`)
      const { trial, ...members } = change
      // The digest of the old file is not that of another.
      const sha256 =
        members.file_path === undefined ? (members.sha256 ?? old.descriptor.sha256) : members.sha256
      const { sha256: _before, ...kept } = old.descriptor
      const descriptor = { ...kept, ...members, name: kept.name, ...(sha256 !== undefined && { sha256 }) }
      if (trial !== undefined && descriptor.attach_points.some(({ Middleware }) => Middleware === 'OnPick'))
        throw new ModuleRejected('trial is not available for OnPick: a worker is picked once per request')
      if (trial !== undefined) this.#table.checkRoom()
      const next = await this.#loader.load(descriptor, await this.#fileOf(descriptor, old, change))
      this.#parts.stats.begin(next.loaded.row, next.createdAtNs)
      const modules =
        trial === undefined ? this.#table.replaced(old, next) : this.#table.tried(old, next, trial)
      const action = trial === undefined ? 'replaced' : `put on trial (${trial.kind})`
      return { modules, current: next, action }
    })
  }

  /** Makes the version on trial current. */
  promote(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (trial) => ({
      ...this.#table.promoted(trial),
      action: 'promoted',
    }))
  }

  /** Ends a trial, or returns to the previous version. */
  rollback(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#change(uuid, requester, async (found) => ({
      ...this.#table.rolledBack(found, (earlier) => this.#loader.withRow(earlier)),
      action: 'rolled back',
    }))
  }

  #change(
    uuid: string,
    requester: Requester,
    act: (found: Registered) => Promise<VersionChange & { action: string }>,
  ): Promise<ChangeResult> {
    return this.#queue(async () => {
      try {
        for (;;) {
          await this.#lines.follow()
          const found = this.#table.find(uuid)
          if (found === undefined) return { uuid: null, text: `no module has the uuid ${uuid}` }
          const { line, loaded } = found
          const stale = this.#lines.notLoaded.get(line.firstUuid)
          if (stale !== undefined)
            throw new ModuleRejected(`its newest version is not loaded here: ${stale.reason}`)
          const earlier = this.#table.earlier(line)
          let changed: Awaited<ReturnType<typeof act>> | null = null
          let isSaved = false
          try {
            changed = await act(found)
            isSaved = await this.#lines.save(line, changed.modules)
          } finally {
            if (!isSaved) this.#table.setEarlier(line, earlier)
          }
          // Another gateway was faster.
          if (!isSaved) continue
          this.#table.modules = changed.modules
          await this.#publish()
          const { action, current } = changed
          this.#audit(action, current.loaded.uuid, loaded.name, null, requester)
          return { uuid: current.loaded.uuid, text: `module ${loaded.name} was ${action}` }
        }
      } catch (error) {
        if (!(error instanceof ModuleRejected)) throw error
        return { uuid: null, text: error.message }
      }
    })
  }

  /** The bytes of a new version. Without a path, a shared module keeps its bytes: the file is on another machine. */
  async #fileOf(descriptor: ModuleDescriptor, old: Registered, change: ModuleChange): Promise<ModuleFile> {
    const { saved } = this.#parts
    const isSamePath = descriptor.file_path === old.descriptor.file_path
    const readFile = () => this.#loader.read(descriptor, old.isConfigured && isSamePath)
    if (!this.#lines.has(old.line)) return readFile()
    const line = saved.read(old.line.firstUuid)
    const keepsBytes = saved.isShared && change.file_path === undefined && line !== undefined
    const file = keepsBytes ? await saved.readBytes(line.current, readFile) : await readFile()
    await saved.keepBytes(file)
    return file
  }

  #onChange(id: string): void {
    if (this.#isClosed) return
    this.#lines.mark(id)
    void this.#queue(() => this.#lines.follow())
  }

  list(isFull: boolean): ModuleList {
    const earlier = isFull ? (line: ModuleLine) => this.#table.earlier(line) : null
    const list = toModuleList(this.#table.modules, this.#parts.stats, earlier)
    if (!isFull) return list
    const notLoaded = [...this.#lines.notLoaded.values()]
    return {
      ...list,
      not_loaded: notLoaded.map(({ uuid, name, reason }) => ({ module_uuid: uuid, name, reason })),
    }
  }

  /** @param isFirst without an earlier module of the request, an outage rejects the request */
  async #registerOne(
    descriptor: ModuleDescriptor,
    requester: Requester,
    isFirst: boolean,
  ): Promise<AddResult> {
    try {
      const { loaded, hash } = await this.#add(descriptor, requester)
      this.#audit('registered', loaded.uuid, loaded.name, hash, requester)
      return { Success: loaded.uuid }
    } catch (error) {
      const isRefused = error instanceof GatewayError
      if (isRefused && isFirst) throw error
      if (error instanceof ModuleRejected || isRefused) return { Error: error.message }
      this.#parts.log.error({ err: error, module: descriptor.name }, 'wasm module registration failed')
      return { Error: 'registration failed; see the gateway log' }
    }
  }

  /** @param requester null for modules of the configuration, which are not saved */
  async #add(descriptor: ModuleDescriptor, requester: Requester | null): Promise<Registered> {
    const { saved, stats } = this.#parts
    this.#table.checkRoom()
    const file = await this.#loader.read(descriptor, requester === null)
    this.#table.checkDuplicate({ ...file, descriptor })
    const registered = await this.#loader.load(descriptor, file)
    if (requester !== null) {
      const line = toSavedLine(registered.line, [registered], [])
      await saved.keepBytes(file)
      if (line !== null) await saved.put(line)
      this.#lines.keep(registered.line)
    }
    stats.begin(registered.loaded.row, registered.createdAtNs)
    this.#table.modules = [...this.#table.modules, registered]
    await this.#publish()
    return registered
  }

  #isSavedName(name: string): boolean {
    return this.#table.modules.some(({ loaded, line }) => loaded.name === name && this.#lines.has(line))
  }

  #publish(): Promise<void> {
    const missing = [...this.#lines.notLoaded].find(
      ([id, { line }]) =>
        line?.current.onFailure === 'closed' &&
        !this.#table.modules.some((module) => module.line.firstUuid === id),
    )
    return this.#parts.publish({ modules: this.modules, missing: missing?.[1].name ?? null })
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

  /** Removes kept bytes and tables that no module uses. A module that is not loaded may need its own bytes. */
  async #removeUnused(): Promise<void> {
    const { modules } = this.#table
    const earlier = modules.flatMap(({ line }) => this.#table.earlier(line))
    await this.#parts.state.retain([...modules, ...earlier].map(({ descriptor }) => descriptor))
    const saved: SavedVersion[] = []
    for (const { line } of this.#lines.notLoaded.values()) {
      if (line === undefined) return
      saved.push(...versionsOf(line))
    }
    await this.#parts.sources.retain(new Set([...modules, ...earlier, ...saved].map(({ hash }) => hash)))
  }

  /** Runs one change after the other, and stops the thread of the trial starts after each. */
  #queue<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#last
      .then(act)
      .finally(() => this.#parts.pool.close())
      .finally(() => this.#removeUnused())
    this.#last = result.catch(() => {})
    return result
  }
}
