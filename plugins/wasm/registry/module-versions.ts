/**
 * Versions of a module: the current one, one on trial, and earlier ones. All functions return a new list: every thread
 * switches at once, and streams in progress keep their version.
 */
import { uuidV7 } from '#shared'
import { ModuleRejected } from '../module-rejected.ts'
import type { Trial } from '../wire.ts'
import type { ModuleLine, Registered } from './module-list.ts'

/** Number of versions available for rollback. */
const MAX_EARLIER = 5

/** List after a change, and the version that is now current. */
interface VersionChange {
  readonly modules: Registered[]
  readonly current: Registered
}

export class ModuleVersions {
  readonly #earlier = new Map<ModuleLine, Registered[]>()

  /** Versions available for rollback, most recent first. */
  earlier(line: ModuleLine): readonly Registered[] {
    return this.#earlier.get(line)?.toReversed() ?? []
  }

  /** @param earlier versions available for rollback, most recent first */
  setEarlier(line: ModuleLine, earlier: readonly Registered[]): void {
    this.#earlier.set(line, earlier.map(plain).toReversed())
  }

  /** Replaces the old version by the new one and ends a trial of it. */
  replace(modules: readonly Registered[], old: Registered, next: Registered): Registered[] {
    this.#remember(old)
    return withoutTrials(modules, old).map((module) =>
      module.loaded.uuid === old.loaded.uuid ? { ...next, line: old.line } : module,
    )
  }

  /** Starts a trial: a canary gets a share of the requests, a shadow sees all without effect. @throws ModuleRejected */
  tryOut(modules: readonly Registered[], old: Registered, next: Registered, trial: Trial): Registered[] {
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
  resume(current: Registered, tried: Registered | null, trial: Trial | null): Registered[] {
    const module = plain(current)
    return tried === null || trial === null ? [module] : this.tryOut([module], module, plain(tried), trial)
  }

  /** Makes the version on trial the current one. @throws ModuleRejected if it is not on trial */
  promote(modules: readonly Registered[], trial: Registered): VersionChange {
    const old = modules.find(({ loaded }) => loaded.uuid === trial.trialOf)
    if (old === undefined) throw new ModuleRejected(`module ${trial.loaded.uuid} is not on trial`)
    const next = plain(trial)
    // Threads cache modules by uuid, and a shadow stores its values under another name.
    const isShadow = trial.loaded.shadowOf !== null
    const current = isShadow ? { ...next, loaded: { ...next.loaded, uuid: uuidV7() } } : next
    return { modules: this.replace(modules, plain(old), current), current }
  }

  /**
   * Ends a trial; without a trial, makes the previous version current.
   *
   * @param prepare assigns a row of the statistics to the previous version
   * @throws ModuleRejected if there is no previous version
   */
  rollback(
    modules: readonly Registered[],
    given: Registered,
    prepare: (earlier: Registered) => Registered,
  ): VersionChange {
    const current = modules.find(({ loaded }) => loaded.uuid === given.trialOf) ?? given
    if (modules.some(({ trialOf }) => trialOf === current.loaded.uuid))
      return { modules: withoutTrials(modules, current), current }
    const earlier = this.#earlier.get(current.line)?.pop()
    if (earlier === undefined)
      throw new ModuleRejected(`there is no earlier version of ${current.loaded.name}`)
    const back = prepare(earlier)
    return { modules: modules.map((module) => (module === current ? back : module)), current: back }
  }

  /** Removes the earlier versions of a removed module. */
  forget(line: ModuleLine): void {
    this.#earlier.delete(line)
  }

  #remember(old: Registered): void {
    const earlier = this.#earlier.get(old.line) ?? []
    earlier.push(plain(old))
    if (earlier.length > MAX_EARLIER) earlier.shift()
    this.#earlier.set(old.line, earlier)
  }
}

/** Removes the trials of a module, which receives all of its requests again. */
export function withoutTrials(modules: readonly Registered[], old: Registered): Registered[] {
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
