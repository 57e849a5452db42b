/**
 * The registered modules in their order, and the versions of each: the current one, one on trial, and earlier ones. Changes
 * return a new list, which becomes current when it is saved: every thread switches at once, and streams in progress keep
 * their version.
 */
import { uuidV7 } from '#shared'
import type { WasmConfig } from '../config.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { ModuleDescriptor, Trial } from '../wire.ts'
import type { ModuleLine, Registered } from './module-list.ts'

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

  /** The modules after the removal of one. */
  without(found: Registered): readonly Registered[] {
    const left = withoutTrials(this.#modules, found).filter(({ loaded }) => loaded.uuid !== found.loaded.uuid)
    if (!left.some(({ line }) => line === found.line)) this.#earlier.delete(found.line)
    // The other version of a trial receives all requests again.
    const other = left.find(({ loaded }) => loaded.uuid === found.trialOf)
    return other === undefined ? left : withoutTrials(left, other)
  }

  /** Versions available for rollback, most recent first. */
  earlier(line: ModuleLine): readonly Registered[] {
    return this.#earlier.get(line)?.toReversed() ?? []
  }

  /** @param earlier versions available for rollback, most recent first */
  setEarlier(line: ModuleLine, earlier: readonly Registered[]): void {
    this.#earlier.set(line, earlier.map(plain).toReversed())
  }

  /** Replaces the old version by the new one and ends a trial of it. */
  replaced(old: Registered, next: Registered): Registered[] {
    this.#remember(old)
    return withoutTrials(this.#modules, old).map((module) =>
      module.loaded.uuid === old.loaded.uuid ? { ...next, line: old.line } : module,
    )
  }

  /** Starts a trial. @throws ModuleRejected */
  tried(old: Registered, next: Registered, trial: Trial): Registered[] {
    return withTrial(this.#modules, old, next, trial)
  }

  /** Makes the version on trial the current one. @throws ModuleRejected if it is not on trial */
  promoted(trial: Registered): VersionChange {
    const old = this.#modules.find(({ loaded }) => loaded.uuid === trial.trialOf)
    if (old === undefined) throw new ModuleRejected(`module ${trial.loaded.uuid} is not on trial`)
    const next = plain(trial)
    // Threads cache modules by uuid, and a shadow stores its values under another name.
    const isShadow = trial.loaded.shadowOf !== null
    const current = isShadow ? { ...next, loaded: { ...next.loaded, uuid: uuidV7() } } : next
    return { modules: this.replaced(plain(old), current), current }
  }

  /**
   * Ends a trial; without a trial, makes the previous version current.
   *
   * @param prepare assigns a row of the statistics to the previous version
   * @throws ModuleRejected if there is no previous version
   */
  rolledBack(given: Registered, prepare: (earlier: Registered) => Registered): VersionChange {
    const modules = this.#modules
    const current = modules.find(({ loaded }) => loaded.uuid === given.trialOf) ?? given
    if (modules.some(({ trialOf }) => trialOf === current.loaded.uuid))
      return { modules: withoutTrials(modules, current), current }
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

  #remember(old: Registered): void {
    const earlier = this.#earlier.get(old.line) ?? []
    earlier.push(plain(old))
    if (earlier.length > MAX_EARLIER) earlier.shift()
    this.#earlier.set(old.line, earlier)
  }
}

/** Sorts by descending priority, then by registration. Versions on trial follow their module. */
function inOrder(modules: readonly Registered[]): readonly Registered[] {
  const byUuid = new Map(modules.map((module) => [module.loaded.uuid, module]))
  const priority = (module: Registered) =>
    (byUuid.get(module.trialOf ?? '') ?? module).descriptor.priority ?? 0
  return modules.toSorted((a, b) => priority(b) - priority(a) || a.line.place - b.line.place)
}

/** Starts a trial: a canary gets a share of the requests, a shadow sees all without effect. @throws ModuleRejected */
function withTrial(
  modules: readonly Registered[],
  old: Registered,
  next: Registered,
  trial: Trial,
): Registered[] {
  // A share that only exists because of another canary is removed by `plain`.
  if (trial.kind === 'canary' && plain(old).loaded.match.share !== undefined)
    throw new ModuleRejected('a canary is not available for a module with match.share')
  const others = withoutTrials(modules, old)
  const tried = { ...next, line: old.line, trial }
  return others.flatMap((module) => {
    if (module.loaded.uuid !== old.loaded.uuid) return [module]
    if (trial.kind === 'shadow') return [module, asShadow(tried, old)]
    const share = trial.percent / 100
    return [
      withMatch(module, { share, isInverse: true }),
      { ...withMatch(tried, { share }), trialOf: old.loaded.uuid },
    ]
  })
}

/** The modules of a line that another gateway or an earlier process has left. */
export function resumed(current: Registered, tried: Registered | null, trial: Trial | null): Registered[] {
  const module = plain(current)
  return tried === null || trial === null ? [module] : withTrial([module], module, plain(tried), trial)
}

/** Removes the trials of a module, which receives all of its requests again. */
function withoutTrials(modules: readonly Registered[], old: Registered): Registered[] {
  return modules
    .filter(({ trialOf }) => trialOf !== old.loaded.uuid)
    .map((module) => (module.loaded.uuid === old.loaded.uuid ? plain(module) : module))
}

function asShadow(next: Registered, { loaded: { uuid } }: Registered): Registered {
  // Its increments must not affect the counters of the module.
  const kvOwner = `${next.loaded.name} (shadow)`
  return { ...next, trialOf: uuid, loaded: { ...next.loaded, shadowOf: uuid, kvOwner } }
}

function withMatch(module: Registered, more: { share: number; isInverse?: boolean }): Registered {
  return { ...module, loaded: { ...module.loaded, match: { ...module.loaded.match, ...more } } }
}

/** Removes everything that a trial added. */
function plain(module: Registered): Registered {
  const { loaded, descriptor } = module
  const { share: _share, isInverse: _isInverse, ...match } = loaded.match
  const share = descriptor.match?.share
  return {
    ...module,
    trialOf: null,
    trial: null,
    loaded: {
      ...loaded,
      shadowOf: null,
      kvOwner: loaded.name,
      match: share === undefined ? match : { ...match, share },
    },
  }
}
