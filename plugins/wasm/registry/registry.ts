/** Registered modules, on control: applies changes one at a time and publishes each. */

import { isDeepStrictEqual } from 'node:util'
import { GatewayError, type Logger, messageOf } from '#kernel'
import { ModuleRejected, wasmErrors } from '../errors.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import type { LoadedModule, ModuleSet } from '../threads/guest-task.ts'
import type { AddResult, ModuleChange, ModuleDescriptor, ModuleList } from '../wire.ts'
import type { ModuleFile } from './load-module.ts'
import { type ModuleLine, type NotLoaded, type Registered, toModuleList } from './module-list.ts'
import { type LoaderParts, ModuleLoader } from './module-loader.ts'
import { ModuleVersions, withoutTrials } from './module-versions.ts'
import { loadLine, toSavedLine } from './saved-lines.ts'
import type { ModuleStore, SavedLine } from './saved-modules.ts'
import type { ChangeResult, Requester } from './thread-commands.ts'

/** Interval of the attempts to load shared modules that could not be loaded. */
const RETRY_MS = 5_000

export interface RegistryParts extends LoaderParts {
  readonly saved: ModuleStore
  readonly log: Logger
  publish(set: ModuleSet): Promise<void>
}

export class Registry {
  readonly #parts: RegistryParts
  #modules: readonly Registered[] = []
  /** By id of the line. They can be removed. */
  readonly #notLoaded = new Map<string, NotLoaded>()
  /** Lines of modules that were registered through the API. */
  readonly #savedLines = new Set<ModuleLine>()
  /** Ids of lines that may have been changed by another gateway. */
  readonly #changed = new Set<string>()
  /** Completion of the last queued change. */
  #last: Promise<unknown> = Promise.resolve()
  readonly #versions = new ModuleVersions()
  readonly #loader: ModuleLoader
  #retry: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#loader = new ModuleLoader(parts, () => this.#modules)
  }

  get modules(): readonly LoadedModule[] {
    return this.#modules.map(({ loaded }) => loaded)
  }

  /** Current versions and versions on trial. */
  get registered(): readonly Registered[] {
    return this.#modules
  }

  /** Loads modules of the configuration, then saved ones. @throws invalid_wasm_config naming a module that cannot be loaded */
  start(): Promise<void> {
    return this.#queue(async () => {
      const { config, saved, pool } = this.#parts
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
        else this.#changed.add(id)
      }
      saved.onChange((id) => this.#onChange(id))
      await this.#follow()
      await pool.close()
    })
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
        ({ loaded: { name } }) => old.has(name) && !names.has(name) && !this.#isSavedName(name),
      )
      this.#checkReload(gone, wanted)
      const fresh: Registered[] = []
      for (const descriptor of wanted) {
        fresh.push(
          await this.#loader.load(descriptor, this.#loader.read(descriptor, true), { beside: fresh }),
        )
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
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#last
    this.#parts.http.close()
    await this.#parts.pool.end()
  }

  /** Registers in order; a failure does not stop the following ones. */
  register(descriptors: readonly ModuleDescriptor[], requester: Requester): Promise<AddResult[]> {
    return this.#queue(async () => {
      const results: AddResult[] = []
      try {
        for (const descriptor of descriptors)
          results.push(await this.#registerOne(descriptor, requester, results.length === 0))
      } finally {
        await this.#parts.pool.close()
      }
      return results
    })
  }

  remove(uuid: string, requester: Requester): Promise<ChangeResult> {
    return this.#queue(async () => {
      for (;;) {
        await this.#follow()
        const found = this.#modules.find(({ loaded }) => loaded.uuid === uuid)
        const [id] = [...this.#notLoaded].find(([, one]) => one.uuid === uuid) ?? []
        if (found === undefined && id === undefined)
          return { uuid: null, text: `no module has the uuid ${uuid}` }
        const left = found === undefined ? this.#modules : this.#without(found)
        if (found === undefined || id === found.line.firstUuid) await this.#parts.saved.remove(id ?? uuid)
        else if (!(await this.#save(found.line, left))) continue
        if (id !== undefined) this.#notLoaded.delete(id)
        this.#modules = left
        await this.#publish()
        this.#audit('removed', uuid, found?.loaded.name ?? null, found?.hash ?? null, requester)
        return { uuid, text: `module ${uuid} was removed` }
      }
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
      const next = await this.#loader.load(descriptor, await this.#fileOf(descriptor, old, change))
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
      const { modules, current } = this.#versions.rollback(this.#modules, found, (earlier) =>
        this.#loader.withRow(earlier),
      )
      return { modules, uuid: current.loaded.uuid, action: 'rolled back' }
    })
  }

  #change(
    uuid: string,
    requester: Requester,
    act: (found: Registered) => Promise<{ modules: Registered[]; uuid: string; action: string }>,
  ): Promise<ChangeResult> {
    return this.#queue(async () => {
      try {
        for (;;) {
          await this.#follow()
          const found = this.#modules.find(({ loaded }) => loaded.uuid === uuid)
          if (found === undefined) return { uuid: null, text: `no module has the uuid ${uuid}` }
          const { line, loaded } = found
          const stale = this.#notLoaded.get(line.firstUuid)
          if (stale !== undefined)
            throw new ModuleRejected(`its newest version is not loaded here: ${stale.reason}`)
          const earlier = this.#versions.earlier(line)
          let changed: Awaited<ReturnType<typeof act>> | null = null
          let isSaved = false
          try {
            changed = await act(found)
            isSaved = await this.#save(line, changed.modules)
          } finally {
            if (!isSaved) this.#versions.setEarlier(line, earlier)
          }
          // Another gateway was faster.
          if (!isSaved) continue
          this.#modules = inOrder(changed.modules)
          await this.#publish()
          this.#audit(changed.action, changed.uuid, loaded.name, null, requester)
          return { uuid: changed.uuid, text: `module ${loaded.name} was ${changed.action}` }
        }
      } catch (error) {
        if (!isExpected(error)) throw error
        return { uuid: null, text: error.message }
      } finally {
        await this.#parts.pool.close()
      }
    })
  }

  /** Stores a line of a module that was registered through the API. @returns false if another gateway has changed it */
  async #save(line: ModuleLine, modules: readonly Registered[]): Promise<boolean> {
    if (!this.#savedLines.has(line)) return true
    const { saved } = this.#parts
    const next = toSavedLine(line, modules, this.#versions.earlier(line))
    if (next !== null) return saved.put(next)
    await saved.remove(line.firstUuid)
    this.#savedLines.delete(line)
    return true
  }

  /** The bytes of a new version. Without a path, a shared module keeps its bytes: the file is on another machine. */
  async #fileOf(descriptor: ModuleDescriptor, old: Registered, change: ModuleChange): Promise<ModuleFile> {
    const { saved } = this.#parts
    const isSamePath = descriptor.file_path === old.descriptor.file_path
    const readFile = () => this.#loader.read(descriptor, old.isConfigured && isSamePath)
    if (!this.#savedLines.has(old.line)) return readFile()
    const line = saved.read(old.line.firstUuid)
    const keepsBytes = saved.isShared && change.file_path === undefined && line !== undefined
    const file = keepsBytes ? await saved.readBytes(line.current, readFile) : readFile()
    await saved.keepBytes(file)
    return file
  }

  #onChange(id: string): void {
    if (this.#isClosed) return
    this.#changed.add(id)
    void this.#queue(async () => {
      await this.#follow()
      await this.#parts.pool.close()
    })
  }

  /** Applies lines that may have been changed by another gateway. */
  async #follow(): Promise<void> {
    for (const id of this.#changed) {
      this.#changed.delete(id)
      let line: SavedLine | undefined
      try {
        line = this.#parts.saved.read(id)
        await this.#apply(id, line)
        if (this.#notLoaded.delete(id)) await this.#publish()
      } catch (error) {
        await this.#missing(id, line, error)
      }
    }
    if (this.#notLoaded.size > 0 && this.#parts.saved.isShared) this.#retryLater()
  }

  /** @param saved undefined if it was removed. @throws ModuleRejected, BadModule; nothing has changed then */
  async #apply(id: string, saved: SavedLine | undefined): Promise<void> {
    const line = [...this.#savedLines].find(({ firstUuid }) => firstUuid === id)
    const own = this.#modules.filter((module) => module.line === line)
    if (saved === undefined) {
      for (const module of own) this.#modules = this.#without(module)
      if (line !== undefined) this.#savedLines.delete(line)
      if (own.length > 0) await this.#publish()
      return
    }
    const isKnown =
      line !== undefined &&
      isDeepStrictEqual(toSavedLine(line, this.#modules, this.#versions.earlier(line)), saved)
    if (isKnown) return
    this.#checkRoom((saved.trial === null ? 1 : 2) - own.length)
    this.#checkDuplicate(saved.current, (module) => module.isConfigured)
    const parts = { saved: this.#parts.saved, loader: this.#loader, versions: this.#versions }
    const next = await loadLine(saved, line, own, { ...parts, log: this.#parts.log })
    const others = this.#modules.filter((module) => module.line !== line)
    this.#keepLine(next[0].line)
    this.#modules = inOrder([...others, ...next])
    await this.#publish()
    const { name, uuid } = next[0].loaded
    this.#parts.log.info(
      { module: name, module_uuid: uuid, sha256: next[0].hash },
      'saved wasm module loaded',
    )
  }

  /** On every gateway, the order of modules that were registered through the API is that of their ids. */
  #keepLine(line: ModuleLine): void {
    this.#savedLines.add(line)
    const lines = [...this.#savedLines].toSorted((a, b) => (a.firstUuid < b.firstUuid ? -1 : 1))
    const places = lines.map(({ place }) => place).toSorted((a, b) => a - b)
    for (const [index, one] of lines.entries()) one.place = places[index]
  }

  /** @throws invalid_wasm_config for a required module of this gateway alone */
  async #missing(id: string, line: SavedLine | undefined, cause: unknown): Promise<void> {
    const { saved, log } = this.#parts
    const reason = messageOf(cause)
    const known = this.#notLoaded.get(id)
    const { descriptor, uuid = id, onFailure } = line?.current ?? known?.line?.current ?? {}
    const name = descriptor?.name ?? null
    if (onFailure === 'closed' && !saved.isShared) {
      const problem = `is load, but module ${name} (${descriptor?.file_path}), with on_failure closed, cannot be loaded: ${reason}; restore the file, or start once with forget`
      throw wasmErrors.invalid_wasm_config.with({ cause }, 'savedModules', problem)
    }
    this.#notLoaded.set(id, { uuid, name, reason, line: line ?? known?.line })
    if (known?.reason === reason && known.uuid === uuid) return
    await this.#publish()
    const fields = { module: name, module_uuid: uuid, file: descriptor?.file_path ?? null, reason }
    log.error(fields, 'saved wasm module not loaded')
  }

  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      for (const id of this.#notLoaded.keys()) this.#onChange(id)
    }, RETRY_MS).unref()
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
    const list = toModuleList(this.#modules, this.#parts.stats, earlier)
    if (!isFull) return list
    const notLoaded = [...this.#notLoaded.values()]
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
      if (isExpected(error) || isRefused) return { Error: error.message }
      this.#parts.log.error({ err: error, module: descriptor.name }, 'wasm module registration failed')
      return { Error: 'registration failed; see the gateway log' }
    }
  }

  /** @param requester null for modules of the configuration, which are not saved */
  async #add(descriptor: ModuleDescriptor, requester: Requester | null): Promise<Registered> {
    const { saved, stats } = this.#parts
    this.#checkRoom()
    const file = this.#loader.read(descriptor, requester === null)
    this.#checkDuplicate(file)
    const registered = await this.#loader.load(descriptor, file)
    if (requester !== null) {
      const line = toSavedLine(registered.line, [registered], [])
      await saved.keepBytes(file)
      if (line !== null) await saved.put(line)
      this.#keepLine(registered.line)
    }
    stats.begin(registered.loaded.row, registered.createdAtNs)
    this.#modules = inOrder([...this.#modules, registered])
    await this.#publish()
    return registered
  }

  /** @param added number of modules */
  #checkRoom(added = 1): void {
    const { maxModules } = this.#parts.config
    if (this.#modules.length + added > maxModules)
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

  /** @param counts whether a module counts */
  #checkDuplicate(
    { hash }: { readonly hash: string },
    counts: (module: Registered) => boolean = () => true,
  ): void {
    const same = this.#modules.find((module) => module.hash === hash && counts(module))
    if (same !== undefined)
      throw new ModuleRejected(`duplicate SHA256 hash: module ${same.loaded.uuid} has the same content`)
  }

  #isSavedName(name: string): boolean {
    return this.#modules.some(({ loaded, line }) => loaded.name === name && this.#savedLines.has(line))
  }

  #publish(): Promise<void> {
    const missing = [...this.#notLoaded].find(
      ([id, { line }]) =>
        line?.current.onFailure === 'closed' && !this.#modules.some((module) => module.line.firstUuid === id),
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

function isExpected(error: unknown): error is ModuleRejected | BadModule {
  return error instanceof ModuleRejected || error instanceof BadModule
}
