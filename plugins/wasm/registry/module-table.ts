/**
 * The registered modules in their order, and the versions of each: the current one, one on trial, and earlier ones. Changes
 * return a new list, which becomes current when it is saved: every thread switches at once, and streams in progress keep
 * their version.
 */
import { isDeepStrictEqual } from 'node:util'
import type { WasmConfig } from '../config.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import type { ModuleDescriptor, Trial } from '../wire.ts'
import { currentOf, type ModuleLine, type Registered } from './module-list.ts'

/** Number of versions available for rollback. */
const MAX_EARLIER = 5

/** List after a change, and the version that is now current. */
export interface VersionChange {
  readonly modules: readonly Registered[]
  readonly current: Registered
}

export class ModuleTable {
  readonly #config: Pick<WasmConfig, 'maxModules'>
  readonly #earlier = new Map<ModuleLine, Registered[]>()
  #modules: readonly Registered[] = []

  constructor(config: Pick<WasmConfig, 'maxModules'>) {
    this.#config = config
  }

  /** Current versions and versions on trial, by priority, then by registration. */
  get modules(): readonly Registered[] {
    return this.#modules
  }

  set modules(modules: readonly Registered[]) {
    this.#modules = inOrder(modules)
  }

  find(uuid: string): Registered | undefined {
    return this.#modules.find(({ loaded }) => loaded.uuid === uuid)
  }

  /** The modules as they run: a version on trial gets a share of the requests of its module. */
  get running(): LoadedModule[] {
    return this.#modules.map((module) => {
      const { loaded, line, trial } = module
      const rule = trial ?? this.#modules.find((one) => one.line === line && one.trial !== null)?.trial
      if (rule == null) return loaded
      return { ...loaded, match: { ...loaded.match, share: rule.percent / 100, isInverse: trial === null } }
    })
  }

  /** The modules after the removal of one: a current version is removed with the one on trial. */
  without(found: Registered): readonly Registered[] {
    if (found.trial !== null) return this.#modules.filter((module) => module !== found)
    this.#earlier.delete(found.line)
    return this.#modules.filter(({ line }) => line !== found.line)
  }

  /** Versions available for rollback, most recent first. */
  earlier(line: ModuleLine): readonly Registered[] {
    return this.#earlier.get(line)?.toReversed() ?? []
  }

  /** @param earlier versions available for rollback, most recent first */
  setEarlier(line: ModuleLine, earlier: readonly Registered[]): void {
    this.#earlier.set(line, earlier.toReversed())
  }

  /** Replaces the current version by the new one and ends a trial. */
  replaced(old: Registered, next: Registered): Registered[] {
    this.#remember(old)
    return this.#withoutTrial(old).map((module) => (module === old ? { ...next, line: old.line } : module))
  }

  /** Starts a trial. @throws ModuleRejected */
  tried(old: Registered, next: Registered, trial: Trial): Registered[] {
    if (old.loaded.match.share !== undefined)
      throw new ModuleRejected('a canary is not available for a module with match.share')
    return this.#withoutTrial(old).flatMap((module) =>
      module === old ? [module, { ...next, line: old.line, trial }] : [module],
    )
  }

  /** Makes the version on trial the current one. @throws ModuleRejected if it is not on trial */
  promoted(given: Registered): VersionChange {
    const { trial, loaded } = given
    const old = currentOf(this.#modules, given)
    if (trial === null || old === undefined) throw new ModuleRejected(`module ${loaded.uuid} is not on trial`)
    const current = { ...given, trial: null }
    return { modules: this.replaced(old, current), current }
  }

  /**
   * Ends a trial; without a trial, makes the previous version current.
   *
   * @param prepare assigns a row of the statistics to the previous version
   * @throws ModuleRejected if there is no previous version
   */
  rolledBack(given: Registered, prepare: (earlier: Registered) => Registered): VersionChange {
    const modules = this.#withoutTrial(given)
    const current = currentOf(modules, given) ?? given
    if (modules.length < this.#modules.length) return { modules, current }
    const earlier = this.#earlier.get(current.line)?.pop()
    if (earlier === undefined)
      throw new ModuleRejected(`there is no earlier version of ${current.loaded.name}`)
    const back = prepare(earlier)
    return { modules: modules.map((module) => (module === current ? back : module)), current: back }
  }

  /** @param added number of modules. @throws ModuleRejected */
  checkRoom(added = 1): void {
    const { maxModules } = this.#config
    if (this.#modules.length + added > maxModules)
      throw new ModuleRejected(`the limit of ${maxModules} modules is reached (plugins.wasm.maxModules)`)
  }

  /** @throws ModuleRejected if the limit of modules would be exceeded */
  checkReload(gone: readonly Registered[], wanted: readonly ModuleDescriptor[]): void {
    const { maxModules } = this.#config
    const left = new Set(this.#modules)
    for (const one of gone) left.delete(one)
    const names = new Set(wanted.map(({ name }) => name))
    // Replacing a module ends its trial.
    for (const one of left) if (one.trial !== null && names.has(one.loaded.name)) left.delete(one)
    for (const { loaded } of left) names.delete(loaded.name)
    if (left.size + names.size > maxModules)
      throw new ModuleRejected(
        `${left.size + names.size} modules would exceed the limit of ${maxModules} (plugins.wasm.maxModules)`,
      )
  }

  /**
   * Several instances of a module differ in settings, conditions or attach points.
   *
   * @param counts whether a module counts
   * @throws ModuleRejected
   */
  checkDuplicate(
    { hash, descriptor }: Pick<Registered, 'hash' | 'descriptor'>,
    counts: (module: Registered) => boolean = () => true,
  ): void {
    const use = useOf(descriptor)
    const same = this.#modules.find(
      (module) => module.hash === hash && counts(module) && isDeepStrictEqual(useOf(module.descriptor), use),
    )
    if (same !== undefined)
      throw new ModuleRejected(
        `duplicate SHA256 hash: module ${same.loaded.uuid} has the same content, with the same config, match and attach_points`,
      )
  }

  #withoutTrial({ line }: Registered): Registered[] {
    return this.#modules.filter((module) => module.line !== line || module.trial === null)
  }

  #remember(old: Registered): void {
    const earlier = this.#earlier.get(old.line) ?? []
    earlier.push(old)
    if (earlier.length > MAX_EARLIER) earlier.shift()
    this.#earlier.set(old.line, earlier)
  }
}

function useOf({ config = {}, match = {}, attach_points }: ModuleDescriptor): object {
  return { config, match, points: new Set(attach_points.map(({ Middleware }) => Middleware)) }
}

/** Sorts by descending priority, then by registration. Versions on trial follow their module. */
function inOrder(modules: readonly Registered[]): readonly Registered[] {
  const priority = (module: Registered) => (currentOf(modules, module) ?? module).descriptor.priority ?? 0
  return modules.toSorted((a, b) => priority(b) - priority(a) || a.line.place - b.line.place)
}
