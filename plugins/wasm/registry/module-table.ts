/** The registered modules in their order, with the versions available for rollback. */
import type { WasmConfig } from '../config.ts'
import { ModuleRejected } from '../module-rejected.ts'
import type { ModuleDescriptor } from '../wire.ts'
import type { Registered } from './module-list.ts'
import { ModuleVersions, withoutTrials } from './module-versions.ts'

export class ModuleTable {
  readonly versions = new ModuleVersions()
  readonly #config: Pick<WasmConfig, 'maxModules'>
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

  /** The modules after the removal of one. */
  without(found: Registered): readonly Registered[] {
    const left = withoutTrials(this.#modules, found).filter(({ loaded }) => loaded.uuid !== found.loaded.uuid)
    if (!left.some(({ line }) => line === found.line)) this.versions.forget(found.line)
    // The other version of a trial receives all requests again.
    const other = left.find(({ loaded }) => loaded.uuid === found.trialOf)
    return other === undefined ? left : withoutTrials(left, other)
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
    for (const one of left) if (one.trialOf !== null && names.has(one.loaded.name)) left.delete(one)
    for (const { loaded } of left) names.delete(loaded.name)
    if (left.size + names.size > maxModules)
      throw new ModuleRejected(
        `${left.size + names.size} modules would exceed the limit of ${maxModules} (plugins.wasm.maxModules)`,
      )
  }

  /** @param counts whether a module counts. @throws ModuleRejected */
  checkDuplicate(
    { hash }: { readonly hash: string },
    counts: (module: Registered) => boolean = () => true,
  ): void {
    const same = this.#modules.find((module) => module.hash === hash && counts(module))
    if (same !== undefined)
      throw new ModuleRejected(`duplicate SHA256 hash: module ${same.loaded.uuid} has the same content`)
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
